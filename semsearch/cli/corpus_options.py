"""Options for reading a corpus, shared by several commands."""

from __future__ import annotations

import click

from semsearch.cli.options import NAME_OR_FILE, Decorator, repeated_option, together
from semsearch.corpus.celltypes import DATES, DECIMALS
from semsearch.corpus.documents import Notify
from semsearch.errors import BadRowError

text_column_option = repeated_option(
    "--text-column",
    "text_columns",
    "C",
    "The column of texts, by name or (CSV, TSV, XLSX) position; several are joined.",
)
id_column_option = click.option("--id-column", metavar="C", help="The column with the ids.")

#: Options for reading a corpus.
corpus_options = together(
    id_column_option,
    text_column_option,
    click.option("--title-column", metavar="C", help="The column with the titles."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first row of CSV, TSV or XLSX names the columns.  [default: guessed]",
    ),
    click.option(
        "--delimiter",
        metavar="SIGN",
        callback=lambda context, parameter, sign: sign and sign.encode().decode("unicode_escape"),
        help="The sign between cells of CSV, such as ^ or \\t.  [default: guessed]",
    ),
    click.option(
        "--skip-lines", type=int, metavar="N", help="Lines above the table.  [default: guessed]"
    ),
    click.option(
        "--decimal", type=click.Choice(DECIMALS), help="Of numbers in CSV.  [default: guessed]"
    ),
    click.option(
        "--dates",
        type=click.Choice(DATES),
        help="How CSV writes dates such as 6/5/2025.  [default: guessed]",
    ),
    click.option(
        "--sheet", metavar="NAME", help="The sheet of a workbook.  [default: the first visible one]"
    ),
    click.option(
        "--records",
        metavar="PATH",
        help="The path to the records in nested JSON, such as data.items; . is the whole value.",
    ),
    click.option("--sql", metavar="QUERY", help="The query for rows of a database: SELECT …."),
    click.option("--lines", is_flag=True, help="Each line of a text file is a document."),
    click.option("--encoding", metavar="NAME", help="Encoding of files.  [default: BOM, or utf-8]"),
    repeated_option(
        "--exclude", "exclude", "PATTERN", "Leave out files of folders, as a .gitignore does."
    ),
    click.option("--skip-bad-rows", is_flag=True, help="Report and skip rows that cannot be used."),
)


def corpora_argument(metavar: str, *, required: bool = True) -> Decorator:
    """Files and folders, passed to the command as `corpora`."""
    return click.argument(
        "corpora", metavar=metavar, type=NAME_OR_FILE, nargs=-1, required=required
    )


class BadRows:
    """Reports and counts rows that cannot be used, or ends the run.

    Args:
        notify: called with a line for each skipped row.
        skip: whether they are skipped.
    """

    def __init__(self, notify: Notify, *, skip: bool = True) -> None:
        self.skipped = 0
        self._note = notify
        self._skip = skip

    def __call__(self, error: BadRowError) -> None:
        """Skip a row, or raise its error."""
        if not self._skip:
            reason = f"{error.reason}; --skip-bad-rows leaves such rows out"
            raise type(error)(error.source, reason, error.document_id)
        self.skipped += 1
        self._note(f"skipped {error}")
