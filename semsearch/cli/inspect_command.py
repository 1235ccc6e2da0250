"""``semsearch inspect``: show how an encoder reads a text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from semsearch.cli.heatmap import check_picture, draw_heat_maps, print_heat_map
from semsearch.cli.options import complete_file, format_option
from semsearch.cli.render import console, json_text, shortened, visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError
from semsearch.explore.inspect import (
    Inspection,
    Token,
    TokenKind,
    TokenSimilarity,
    inspect_text,
    token_similarity,
)
from semsearch.protocols import Matrix

#: The most tokens in the table; models usually read up to 512, word encoders any number.
TABLE_MAX_TOKENS = 512
TABLE_VALUES = 6
DECIMALS = 6


@click.command("inspect")
@click.argument("text")
@click.option(
    "--encoder",
    "specs",
    metavar="SPEC",
    shell_complete=complete_file,
    multiple=True,
    default=[DEFAULT_ENCODER],
    show_default=True,
    help="An encoder as for `semsearch index`; can be repeated.",
)
@click.option("--against", metavar="TEXT2", help="Compare all tokens with those of this text.")
@format_option("table", "jsonl", description="A table, or one line per encoder.")
@click.option(
    "--output",
    "picture",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --against, also draw the comparison to FILE.png or FILE.svg (extra plot).",
)
def command(
    text: str, specs: tuple[str, ...], against: str | None, format_name: str, picture: Path | None
) -> None:
    """Show how an encoder reads TEXT.

    For a transformer: word pieces and ids, where the text is truncated, the pooling, and the cosine
    of each token vector with the sentence vector. For a word encoder: which words it knows, and the
    same cosines. TEXT is read as a document.

    With --against, the cosines of all tokens with those of TEXT2. In the example below, that of the
    brown bear is 0.87 with the polar bear, and 0.37 with the verb "bear".

    \b
    semsearch inspect "Sinan loves a beautiful day"
    semsearch inspect "a brown bear" --against "a polar bear cannot bear the noise" \\
        --output bears.png
    semsearch inspect "a brown bear" --encoder minilm --encoder hashing --format jsonl
    """
    if picture is not None:
        if against is None:
            raise ArgumentError("--output draws a comparison; name the other text with --against")
        check_picture(picture)
    similarities = []
    for spec in specs:
        if against is None:
            inspection = inspect_text(spec, text)
            if format_name == "table":
                _print_inspection(inspection)
            else:
                click.echo(json_text(_inspection_record(inspection)))
            continue
        similarity = token_similarity(spec, text, against)
        similarities.append(similarity)
        if format_name == "table":
            print_heat_map(similarity)
        else:
            click.echo(json_text(_similarity_record(similarity)))
    if picture is not None:
        for note in draw_heat_maps(similarities, picture):
            click.echo(note, err=True)


def _print_inspection(inspection: Inspection) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text(visible(inspection.spec), style="bold"))
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    for name, fact in _facts(inspection).items():
        facts.add_row(Text(name), Text(fact))
    out.print(facts)
    shown = inspection.tokens[:TABLE_MAX_TOKENS]
    columns = {name: cells for name, cells in _columns(inspection, shown).items() if any(cells)}
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        is_text = name in ("token", "text", "kind", "known")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    out.print(table)
    if more := len(inspection.tokens) - len(shown):
        out.print(Text(f"… {more:,} more; --format jsonl has all"))
    out.print()


def _facts(inspection: Inspection) -> dict[str, str]:
    """The facts printed above the tokens, by name."""
    read = sum(token.kind is TokenKind.TEXT for token in inspection.tokens)
    tokens = f"{read:,} of {inspection.text_tokens:,} are read"
    for kind in (TokenKind.PROMPT, TokenKind.SPECIAL):
        if count := sum(token.kind is kind for token in inspection.tokens):
            tokens += f", and {count:,} {kind.value} ones"
    facts = {"tokens": tokens}
    if inspection.cut_off:
        start = f"from character {inspection.read_to:,} of {len(inspection.text):,}"
        facts["cut off"] = f"{start}: {shortened(visible(inspection.cut_off))}"
    if inspection.max_tokens is not None:
        facts["longest text"] = f"{inspection.max_tokens:,} tokens"
    if inspection.pooling is not None:
        facts["pooling"] = inspection.pooling
    facts["dimension"] = f"{len(inspection.vector):,}"
    first = " ".join(f"{value:z.4f}" for value in inspection.vector[:TABLE_VALUES])
    facts["vector"] = first + " …" * (len(inspection.vector) > TABLE_VALUES)
    return facts


def _columns(inspection: Inspection, tokens: tuple[Token, ...]) -> dict[str, list[str]]:
    """The cells of the table by column; columns without values are empty."""
    known = {True: "yes", False: "no", None: ""}
    return {
        "": [str(number) for number in range(1, len(tokens) + 1)],
        "token": [visible(token.piece) for token in tokens],
        "id": ["" if token.id is None else str(token.id) for token in tokens],
        "known": [known[token.known] for token in tokens],
        "kind": [token.kind.value for token in tokens],
        "characters": [
            f"{token.start}-{token.end}" if token.end > token.start else "" for token in tokens
        ],
        "text": [visible(inspection.text[token.start : token.end]) for token in tokens],
        "cosine": [_number(token.cosine) for token in tokens],
    }


def _number(cosine: float | None) -> str:
    return "-" if cosine is None else f"{cosine:z.3f}"


def _inspection_record(inspection: Inspection) -> dict[str, Any]:
    return {
        "encoder": inspection.spec,
        "text": inspection.text,
        "tokens": _token_records(inspection),
        "text_tokens": inspection.text_tokens,
        "read_to": inspection.read_to,
        "cut_off": inspection.cut_off,
        "max_tokens": inspection.max_tokens,
        "pooling": inspection.pooling,
        "dimension": len(inspection.vector),
        "vector": _rounded(inspection.vector.reshape(1, -1))[0],
    }


def _similarity_record(similarity: TokenSimilarity) -> dict[str, Any]:
    left, right = similarity.left, similarity.right
    return {
        "encoder": left.spec,
        "left": {"text": left.text, "tokens": _token_records(left)},
        "right": {"text": right.text, "tokens": _token_records(right)},
        "sentence_cosine": round(similarity.sentence_cosine, DECIMALS),
        "cosines": _rounded(similarity.cosines),
    }


def _token_records(inspection: Inspection) -> list[dict[str, Any]]:
    return [token._asdict() | {"kind": token.kind.value} for token in inspection.tokens]


def _rounded(matrix: Matrix) -> list[list[float | None]]:
    """Rounded values for JSON, with null for NaN."""
    return [
        [None if math.isnan(value) else round(value, DECIMALS) for value in row]
        for row in matrix.tolist()
    ]
