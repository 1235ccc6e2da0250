"""``semsearch compare``: compare several systems on the same text."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import click
from rich.text import Text

from semsearch.cli.options import (
    existing_index,
    is_given,
    optional_index_option,
    repeated_option,
    where_option,
)
from semsearch.cli.render import console, grid, shortened, visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity
from semsearch.explore.compare import Neighbours, compare_neighbours, compare_sentences
from semsearch.records import Hit

CELL_MAX_CHARACTERS = 160


@click.command("compare")
@click.argument("text", required=False)
@repeated_option(
    "--system",
    "systems",
    "SPEC",
    "A space of the index, bm25, or hybrid:SPACE; for sentences, an encoder or "
    "cross-encoder:MODEL.  [default: all spaces and bm25; for sentences, minilm]",
)
@repeated_option("--sentence", "sentences", "TEXT", "Instead of a search, compare these sentences.")
@optional_index_option
@click.option("-k", metavar="N", default=10, show_default=True, help="Documents per system.")
@where_option
def compare_command(
    text: str | None,
    systems: tuple[str, ...],
    sentences: tuple[str, ...],
    directory: Path | None,
    k: int,
    where: str | None,
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
        if text is not None or any(map(is_given, ("directory", "k", "where"))):
            raise ArgumentError("--sentence can only be used with --system")
        for system, matrix in compare_sentences(sentences, systems or (DEFAULT_ENCODER,)):
            table = grid([system, *(f">{number}" for number in range(1, len(sentences) + 1))])
            table.columns[0].ratio = 1
            for number, (sentence, row) in enumerate(zip(sentences, matrix, strict=True), start=1):
                table.add_row(f"{number}  {shortened(sentence)}", *(f"{one:.3f}" for one in row))
            console().print(table)
        return
    if text is None:
        raise ArgumentError("give a TEXT to search for, or --sentence twice or more")
    found = compare_neighbours(existing_index(directory), text, systems, k, where=where)
    table = grid([">", *found.hits])
    for column in table.columns[1:]:
        column.ratio = 1
    for rank, row in enumerate(zip_longest(*found.hits.values()), start=1):
        table.add_row(str(rank), *(hit and _cell(found, hit) for hit in row))
    out = console()
    out.print(table)
    out.print("\n* found by all; + by more than one")
    for left, right, shared in found.agreements():
        out.print(visible(f"{left} and {right}: {quantity(shared, 'document')} shared"))


def _cell(found: Neighbours, hit: Hit) -> Text:
    head = visible(f"{found.mark(hit)}{hit.score:.3f} {hit.title or hit.document_id}")
    passage = shortened(hit.text, CELL_MAX_CHARACTERS)
    return Text.assemble((head, "bold"), "\n", (passage, "dim"))
