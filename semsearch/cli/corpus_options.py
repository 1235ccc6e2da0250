"""Options for reading a corpus, shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import click

from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, CorpusError

#: The bad rows that are listed when one ends a run.
MAX_LISTED = 20

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
    click.option("--lines", is_flag=True, help="Each line of a text file is a document."),
    click.option(
        "--encoding",
        metavar="NAME",
        help="The encoding of text files.  [default: by BOM, or utf-8]",
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


class BadRows:
    """Handles rows that cannot be used: skips them, or ends the run and lists the first ones.

    Args:
        progress: shows the rows.
        skip: whether they are skipped.
    """

    def __init__(self, progress: IndexingProgress, *, skip: bool) -> None:
        self.skipped = 0
        self._note = progress.note
        self._skip = skip
        self._listed: list[BadRowError] | None = None

    def __call__(self, error: BadRowError) -> None:
        """Skip a row, or raise its error."""
        if self._listed is not None:
            self._listed.append(error)
            if len(self._listed) == MAX_LISTED:
                raise error
        elif self._skip:
            self.skipped += 1
            self._note(visible(f"skipped {error}"))
        else:
            raise error

    @contextmanager
    def listed(self, read_again: Callable[[], object]) -> Iterator[None]:
        """If a bad row ends the block, list the first ones of the corpus.

        Args:
            read_again: reads the corpus from its beginning, if it can be read twice.
        """
        try:
            yield
        except BadRowError as error:
            ending = error
            listed: list[BadRowError] = []
            self._listed = listed
            with suppress(CorpusError):
                read_again()
            if len(listed) > 1:
                for bad in listed:
                    self._note(visible(str(bad)))
                least = "at least " if len(listed) == MAX_LISTED else ""
                ending = BadRowError("", f"{least}{len(listed)} bad rows")
            if not self._skip:
                ending.add_remedy("--skip-bad-rows leaves such rows out")
            raise ending from error


def opened_corpus(
    paths: list[str],
    progress: IndexingProgress,
    bad_rows: BadRows,
    **columns: Any,
) -> Corpus:
    """The corpus of these files; its messages go to `progress`, once if it is read twice."""
    return Corpus(
        paths,
        notify=cache(lambda message: progress.note(visible(message))),
        on_bad_row=bad_rows,
        **columns,
    )
