"""``semsearch export``: export an index to files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import index_option, space_option, where_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import note, say
from semsearch.errors import quantity
from semsearch.explore.export import Exported, export_index
from semsearch.index import Index


@click.command("export")
@click.argument("output", type=click.Path(path_type=Path))
@index_option
@click.option("--vectors", is_flag=True, help="Write passages with their vectors, not documents.")
@click.option("--groups", is_flag=True, help="Add columns: group, and of which one a duplicate.")
@space_option
@where_option
def export_command(output: Path, directory: Path, **options: Any) -> None:
    """Export the documents of an index, or its vectors, to OUTPUT: .xlsx, .csv, .parquet or .jsonl.

    Each row is a document. An index that was made from a table is written with the columns of that
    table, in their order, except as JSON lines; other rows have id, title, text and metadata.
    `semsearch index OUTPUT` can read the file. With --groups, two more columns: the topic, and the
    first of documents that are nearly the same (by its id, or its row if the table has no ids).

    With --vectors, each row is a passage: the id of its document, its characters [start, end) in
    the text, the passage and its vector.

    CSV keeps values as they are: a spreadsheet takes a text that begins with =, +, - or @ for a
    formula, so import documents of others as text.

    \b
    semsearch export survey.xlsx --groups
    semsearch export films.parquet
    semsearch export recent.jsonl --where "year >= 2000" --index indexes/films
    semsearch export films.csv
    semsearch export passages.parquet --vectors --space minilm
    """
    with Index.open(directory) as index, IndexingProgress("documents") as progress:
        exported = export_index(index, output, on_progress=progress.of, **options)
    report(exported, "passage" if options["vectors"] else "document")


def report(exported: Exported, noun: str) -> None:
    """Print what was written, and how it differs from what was to be written."""
    if exported.as_json:
        columns = ", ".join(exported.as_json)
        note(f"written as JSON text, since no Parquet type fits all values: {columns}")
    if exported.cut:
        note(f"{quantity(exported.cut, 'text')} cut at 32,767 characters, the most of a cell")
    say(f"{exported.file}: {quantity(exported.rows, noun)}")
