"""How a corpus is read: the options of commands that take one."""

from __future__ import annotations

import click

from semsearch.cli.options import together
from semsearch.corpus import CorpusFormat

_FORMATS = ", ".join(item.value for item in CorpusFormat)

#: How a corpus is read.
corpus_options = together(
    click.option("--id-column", metavar="C", help="The column that holds the ids."),
    click.option(
        "--text-column",
        "text_columns",
        metavar="C",
        multiple=True,
        help="The column that is searched, by name or (CSV, TSV) place; several are joined.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first row of CSV, TSV or XLSX names the columns.  [default: guessed]",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of a workbook.  [default: the first]"),
    click.option(
        "--records",
        metavar="PATH",
        help="Where the records are in nested JSON, such as data.items; . is the whole value.",
    ),
    click.option("--sql", metavar="QUERY", help="The rows of a database, such as SELECT …."),
    click.option(
        "--encoding", metavar="NAME", help="Of text files.  [default: utf-8, or by its BOM]"
    ),
    click.option(
        "--input-format",
        type=click.Choice([item.value for item in CorpusFormat]),
        metavar="FORMAT",
        help=f"Of the corpus, where name and content do not tell: {_FORMATS}.",
    ),
    click.option(
        "--exclude",
        metavar="PATTERN",
        multiple=True,
        help="Leave files of folders out, by a pattern as in .gitignore; further ones stand in the "
        "folder's .semsearchignore.",
    ),
    click.option("--skip-bad-rows", is_flag=True, help="List rows that cannot be used, and go on."),
)
