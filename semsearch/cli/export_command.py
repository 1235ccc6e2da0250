"""``semsearch export``: export an index to files of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import existing_index, index_option, space_option, where_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import note_json_columns, visible
from semsearch.errors import ArgumentError, quantity
from semsearch.explore.export import ENDINGS, ExportFormat, export_index
from semsearch.index import Index


@click.command("export")
@click.argument("output", type=click.Path(path_type=Path))
@index_option
@click.option("--vectors", is_flag=True, help="Write passages with their vectors, not documents.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([kind.value for kind in ExportFormat]),
    help=f"The format.  [default: by the suffix of OUTPUT: {', '.join(ENDINGS)}]",
)
@space_option
@where_option
def command(
    output: Path,
    directory: Path | None,
    vectors: bool,
    format_name: str | None,
    space: str | None,
    where: str | None,
) -> None:
    """Export the documents of an index, or its vectors, to OUTPUT.

    Each row is a document with its id, title, text and metadata; `semsearch index OUTPUT` can read
    Parquet, JSON lines and CSV. With --vectors, each row is a passage: the id of its document, its
    characters [start, end) in the text, the passage and its vector. `datasets` is a folder with a
    Parquet file for Hugging Face's load_dataset.

    NumPy and FAISS (a flat inner product index) files contain only vectors: vector n belongs to
    line n of OUTPUT.jsonl, counted from 0.

    \b
    semsearch export films.parquet
    semsearch export recent.jsonl --where "year >= 2000" --index indexes/films
    semsearch export films.csv
    semsearch export films/ --format datasets
    semsearch export passages.parquet --vectors --space minilm
    semsearch export films.faiss
    """
    if str(output) == "-":
        raise ArgumentError("export writes whole files, not standard output: name a file")
    with Index.open(existing_index(directory)) as index, IndexingProgress("documents") as progress:
        exported = export_index(
            index,
            output,
            vectors=vectors,
            format=format_name,
            space=space,
            where=where,
            on_progress=lambda done, total: progress.update(done, done / total),
        )
    note_json_columns(exported.as_json)
    files = ", ".join(map(str, exported.files))
    noun = "passage" if space or vectors or len(exported.files) > 1 else "document"
    click.echo(visible(f"{files}: {quantity(exported.rows, noun)}"))
