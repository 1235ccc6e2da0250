"""``semsearch export``: export an index to files of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import existing_index, index_option, space_option, where_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import note, say
from semsearch.errors import quantity
from semsearch.explore.export import export_index
from semsearch.index import Index


@click.command("export")
@click.argument("output", type=click.Path(path_type=Path))
@index_option
@click.option("--vectors", is_flag=True, help="Write passages with their vectors, not documents.")
@space_option
@where_option
def export_command(
    output: Path, directory: Path | None, vectors: bool, space: str | None, where: str | None
) -> None:
    """Export the documents of an index, or its vectors, to OUTPUT: .parquet, .jsonl or .csv.

    Each row is a document with its id, title, text and metadata; `semsearch index OUTPUT` can read
    the file. With --vectors, each row is a passage: the id of its document, its characters
    [start, end) in the text, the passage and its vector.

    CSV keeps values as they are: a spreadsheet takes a text that begins with =, +, - or @ for a
    formula, so import documents of others as text.

    \b
    semsearch export films.parquet
    semsearch export recent.jsonl --where "year >= 2000" --index indexes/films
    semsearch export films.csv
    semsearch export passages.parquet --vectors --space minilm
    """
    with Index.open(existing_index(directory)) as index, IndexingProgress("documents") as progress:
        exported = export_index(
            index,
            output,
            vectors=vectors,
            space=space,
            where=where,
            on_progress=lambda done, total: progress.update(done, done / total),
        )
    if exported.as_json:
        columns = ", ".join(exported.as_json)
        note(f"written as JSON text, since no Parquet type fits all values: {columns}")
    noun = "passage" if vectors else "document"
    say(f"{exported.file}: {quantity(exported.rows, noun)}")
