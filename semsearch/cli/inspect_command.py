"""``semsearch inspect``: show how an encoder reads a text."""

from __future__ import annotations

import math

import click
from rich.text import Text

from semsearch.cli.options import repeated_option
from semsearch.cli.render import console, grid, shortened, visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.explore.inspect import (
    Inspection,
    TokenKind,
    TokenSimilarity,
    inspect_text,
    token_similarity,
)

#: The most rows of a matrix in a terminal, and the widths of their labels and of columns.
MATRIX_ROWS, ROW_LABEL_CELLS, COLUMN_CELLS = 40, 13, 8


@click.command("inspect")
@click.argument("text")
@repeated_option(
    "--encoder",
    "specs",
    "SPEC",
    f"An encoder as for `semsearch index`; can be repeated.  [default: {DEFAULT_ENCODER}]",
)
@click.option("--against", metavar="TEXT2", help="Compare all tokens with those of this text.")
def inspect_command(text: str, specs: tuple[str, ...], against: str | None) -> None:
    """Show how an encoder reads TEXT.

    For a transformer: word pieces and ids, where the text is truncated, the pooling, and the cosine
    of each token vector with the sentence vector. For a word encoder: which words it knows, and the
    same cosines. TEXT is read as a document.

    With --against, the cosines of all tokens with those of TEXT2.

    \b
    semsearch inspect "Sinan loves a beautiful day"
    semsearch inspect "a brown bear" --against "a polar bear cannot bear the noise"
    semsearch inspect "a brown bear" --encoder minilm --encoder hashing
    """
    for spec in specs or (DEFAULT_ENCODER,):
        if against is None:
            _print_inspection(inspect_text(spec, text))
        else:
            _print_similarity(token_similarity(spec, text, against))


def _print_inspection(inspection: Inspection) -> None:
    out = console()
    out.print(visible(inspection.spec), style="bold")
    facts = grid(["", ""])
    facts.show_header = False
    for name, fact in _facts(inspection).items():
        facts.add_row(Text(visible(name), style="dim"), visible(fact))
    out.print(facts)
    tokens = inspection.tokens
    known = {True: "yes", False: "no", None: ""}
    columns = {
        ">": [str(number) for number in range(1, len(tokens) + 1)],
        "token": [token.piece for token in tokens],
        ">id": ["" if token.id is None else str(token.id) for token in tokens],
        "known": [known[token.known] for token in tokens],
        "kind": [token.kind.value for token in tokens],
        ">characters": [
            f"{token.start}-{token.end}" if token.end > token.start else "" for token in tokens
        ],
        "text": [inspection.text[token.start : token.end] for token in tokens],
        ">cosine": [_number(token.cosine) for token in tokens],
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    table = grid(columns)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(visible, row))
    out.print(table)
    out.print()


def _facts(inspection: Inspection) -> dict[str, str]:
    """The facts printed above the tokens, by name."""
    counts = {kind: sum(token.kind is kind for token in inspection.tokens) for kind in TokenKind}
    tokens = f"{counts.pop(TokenKind.TEXT):,} of {inspection.text_tokens:,} are read"
    others = [f", and {count:,} {kind.value} ones" for kind, count in counts.items() if count]
    facts = {"tokens": tokens + "".join(others)}
    if inspection.cut_off:
        start = f"from character {inspection.read_to:,} of {len(inspection.text):,}"
        facts["cut off"] = f"{start}: {shortened(inspection.cut_off)}"
    if inspection.max_tokens is not None:
        facts["longest text"] = f"{inspection.max_tokens:,} tokens"
    if inspection.pooling is not None:
        facts["pooling"] = inspection.pooling
    facts["dimension"] = f"{len(inspection.vector):,}"
    return facts


def _print_similarity(similarity: TokenSimilarity) -> None:
    """Print the cosines of as many tokens as fit, and report how many are left out."""
    out = console()
    left, right = similarity.left, similarity.right
    rows = [visible(token.piece) for token in left.tokens[:MATRIX_ROWS]]
    fitting = max(1, (out.width - ROW_LABEL_CELLS) // (COLUMN_CELLS + 1))
    columns = [visible(token.piece) for token in right.tokens[:fitting]]
    out.print(visible(left.spec), style="bold")
    out.print(f"rows     {visible(left.text)}", overflow="ellipsis", no_wrap=True)
    out.print(f"columns  {visible(right.text)}", overflow="ellipsis", no_wrap=True)
    table = grid(["", *(f">{label}" for label in columns)])
    for column in table.columns:
        column.no_wrap, column.overflow, column.max_width = True, "ellipsis", COLUMN_CELLS
    table.columns[0].max_width = ROW_LABEL_CELLS
    for label, cosines in zip(rows, similarity.cosines.tolist(), strict=False):
        table.add_row(label, *(_number(cosine, 2) for cosine in cosines[:fitting]))
    out.print(table)
    for name, shown, side in (("rows", rows, left), ("columns", columns, right)):
        if len(shown) < len(side.tokens):
            out.print(f"the first {len(shown)} of {len(side.tokens):,} {name}")
    if shared := similarity.shared():
        both = ", ".join(f"{visible(piece)} {_number(cosine, 2)}" for piece, cosine in shared)
        out.print(f"in both: {both}", overflow="ellipsis", no_wrap=True)
    out.print(f"the two sentence vectors: {_number(similarity.sentence_cosine, 2)}")
    out.print()


def _number(cosine: float | None, decimals: int = 3) -> str:
    return "-" if cosine is None or math.isnan(cosine) else f"{cosine:z.{decimals}f}"
