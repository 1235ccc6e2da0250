"""Options for reading a corpus, shared by several commands."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus, CorpusFormat
from semsearch.errors import BadRowError, refuse

_FORMATS = ", ".join(item.value for item in CorpusFormat)

#: Options for reading a corpus.
corpus_options = together(
    click.option("--id-column", metavar="C", help="The column with the ids."),
    click.option(
        "--text-column",
        "text_columns",
        metavar="C",
        multiple=True,
        help="The column to search, by name or (CSV, TSV, XLSX) position; several are joined.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first row of CSV, TSV or XLSX names the columns.  [default: guessed]",
    ),
    click.option(
        "--sheet", metavar="NAME", help="The sheet of a workbook.  [default: the first visible one]"
    ),
    click.option(
        "--records",
        metavar="PATH",
        help="The path to the records in nested JSON, such as data.items; . is the whole value.",
    ),
    click.option(
        "--sql", metavar="QUERY", help="The query for rows of a database, such as SELECT …."
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="The encoding of text files.  [default: by BOM, or utf-8]",
    ),
    click.option(
        "--input-format",
        type=click.Choice([item.value for item in CorpusFormat]),
        metavar="FORMAT",
        help=f"The format of the corpus, if not clear from its name or content: {_FORMATS}.",
    ),
    click.option(
        "--exclude",
        metavar="PATTERN",
        multiple=True,
        help="Exclude files of folders by a .gitignore pattern, in addition to those in the "
        "folder's .semsearchignore.",
    ),
    click.option("--skip-bad-rows", is_flag=True, help="Report and skip rows that cannot be used."),
)


def opened_corpus(
    paths: tuple[str, ...],
    progress: IndexingProgress,
    *,
    input_format: str | None,
    skip_bad_rows: bool,
    **columns: Any,
) -> Corpus:
    """The corpus of these files; its messages go to `progress`."""

    def skip(error: BadRowError) -> None:
        progress.note(visible(f"skipped {error}"))

    return Corpus(
        list(paths),
        format=input_format,
        notify=lambda message: progress.note(visible(message)),
        on_bad_row=skip if skip_bad_rows else refuse,
        **columns,
    )
