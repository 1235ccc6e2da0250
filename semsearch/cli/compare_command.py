"""``semsearch compare``: compare several systems on the same text."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from semsearch.cli.options import (
    complete_file,
    existing_index,
    format_option,
    index_option,
    is_given,
    where_option,
)
from semsearch.cli.render import console, json_text, shortened, visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity
from semsearch.explore.compare import (
    Neighbours,
    SentenceSimilarities,
    compare_neighbours,
    compare_sentences,
)
from semsearch.records import Hit

if TYPE_CHECKING:
    from rich.text import Text

CELL_MAX_CHARACTERS = 160


@click.command("compare")
@click.argument("text", required=False)
@click.option(
    "--system",
    "systems",
    metavar="SPEC",
    shell_complete=complete_file,
    multiple=True,
    help="A space of the index, bm25, or hybrid:SPACE; for sentences, an encoder or "
    "cross-encoder:MODEL.  [default: all spaces and bm25; for sentences, minilm]",
)
@click.option(
    "--sentence",
    "sentences",
    metavar="TEXT",
    multiple=True,
    help="Instead of a search, compare these sentences with each other.",
)
@index_option
@click.option(
    "-k", metavar="N", help="The number of documents per system.  [default: 10]", type=int
)
@where_option
@format_option("table", "jsonl", description="A table, or one line per system and pair of systems.")
def command(
    text: str | None,
    systems: tuple[str, ...],
    sentences: tuple[str, ...],
    directory: Path | None,
    k: int | None,
    where: str | None,
    format_name: str,
) -> None:
    """Show what several systems find for TEXT, side by side, and how many documents they share.

    The systems are embedding spaces of one index (semsearch configure --add-space), bm25, or both
    together. With --sentence, given twice or more, no index is needed: all sentences are compared
    with each other.

    \b
    semsearch compare "a heist goes wrong" --index indexes/films --system minilm --system bm25
    semsearch compare --sentence "He will get scared" --sentence "She will get the drinks" \\
        --system minilm --system minilm@cls
    """
    if sentences:
        if is_given("directory") or (text, k, where) != (None, None, None):
            raise ArgumentError("--sentence can only be used with --system and --format")
        compared = compare_sentences(sentences, systems or (DEFAULT_ENCODER,))
        (_print_matrices if format_name == "table" else _write_matrices)(sentences, compared)
        return
    if text is None:
        raise ArgumentError("give a TEXT to search for, or --sentence twice or more")
    k = 10 if k is None else k
    found = compare_neighbours(existing_index(directory), text, systems, k, where=where)
    (_print_neighbours if format_name == "table" else _write_neighbours)(found)


def _print_neighbours(found: Neighbours) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", justify="right", style="dim")
    for name in found.hits:
        table.add_column(visible(name), ratio=1, overflow="fold")
    for rank, row in enumerate(zip_longest(*found.hits.values()), start=1):
        cells = [Text("") if hit is None else _cell(found, hit) for hit in row]
        table.add_row(Text(str(rank)), *cells)
    out = console()
    out.print(table)
    out.print(Text("\n* found by all; + by more than one"))
    for left, right, shared in found.agreements():
        out.print(Text(visible(f"{left} and {right}: {quantity(shared, 'document')} shared")))


def _cell(found: Neighbours, hit: Hit) -> Text:
    from rich.text import Text

    mark = found.mark(hit)
    head = f"{mark}{hit.score:.3f} {hit.title or hit.document_id}"
    passage = shortened(visible(hit.text), CELL_MAX_CHARACTERS)
    style = "bold" if mark == "* " else ""
    return Text.assemble((visible(head), style), "\n", (passage, "dim"))


def _write_neighbours(found: Neighbours) -> None:
    """A line per system, and a line per pair of systems."""
    for name, hits in found.hits.items():
        records = [
            {
                "rank": hit.rank,
                "score": round(hit.score, 6),
                "id": hit.document_id,
                "found_by": found.found_by[hit.document_id],
                "text": hit.text,
            }
            for hit in hits
        ]
        click.echo(json_text({"system": name, "hits": records}))
    for agreement in found.agreements():
        click.echo(json_text(agreement._asdict()))


def _print_matrices(sentences: tuple[str, ...], compared: list[SentenceSimilarities]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    for system, matrix in compared:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column(visible(system), ratio=1, overflow="fold", header_style="bold")
        for number in range(1, len(sentences) + 1):
            table.add_column(str(number), justify="right")
        for number, (sentence, row) in enumerate(zip(sentences, matrix, strict=True), start=1):
            named = Text(f"{number}  {shortened(visible(sentence))}")
            table.add_row(named, *[Text(f"{value:.3f}") for value in row])
        out.print(table)


def _write_matrices(sentences: tuple[str, ...], compared: list[SentenceSimilarities]) -> None:
    for system, matrix in compared:
        rows = [[round(float(value), 6) for value in row] for row in matrix]
        line = {"system": system, "sentences": list(sentences), "matrix": rows}
        click.echo(json_text(line))
