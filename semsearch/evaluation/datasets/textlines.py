"""Reads numbered lines and tables of published files, through the readers of corpora."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from semsearch.corpus import Row, good_rows, open_table, text_lines
from semsearch.errors import CorpusError, DatasetError


class Line(NamedTuple):
    """A line without its newline, and its location (``sts.csv:418``)."""

    place: str
    text: str


class Rows(NamedTuple):
    """A table, whose rows are read lazily.

    Args:
        columns: their names; ``column 1``, ``column 2`` … without a header.
        rows: the rows.
        first: some of the first rows.
    """

    columns: list[str]
    rows: Iterator[Row]
    first: list[Row]

    @property
    def has_header(self) -> bool:
        """Whether the first row of the file names the columns."""
        return self.columns[0] != "column 1"


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Convert errors of the system, of archives and of rows to a DatasetError with its place."""
    try:
        yield
    except DatasetError:
        raise
    except CorpusError as error:
        raise DatasetError(str(error)) from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise DatasetError(f"{file} is damaged: {error}") from error
    except OSError as error:
        raise DatasetError(f"{file}: {error.strerror or error}") from error


def numbered_lines(file: Path, *, fallback: str | None = None) -> Iterator[Line]:
    """The lines of a file in UTF-8, plain or gzipped.

    Args:
        file: the file.
        fallback: the encoding of a file that is not UTF-8, for old data sets.

    Raises:
        DatasetError: the file cannot be read, or a line is not UTF-8 or too long.
    """
    with reading(file):
        lines = text_lines(file)
        if fallback is not None:
            try:
                lines = iter(list(lines))
            except CorpusError:
                lines = text_lines(file, fallback)
        for number, text in lines:
            yield Line(f"{file}:{number}", text.removesuffix("\n"))


@contextmanager
def table_rows(file: Path, *, header: bool | None = None) -> Iterator[Rows]:
    """The rows of a table: CSV, TSV, JSON lines … by its suffix.

    Args:
        file: the table; optionally gzipped.
        header: whether its first row names the columns; None to guess.

    Raises:
        DatasetError: the file or a row cannot be read.
    """
    with reading(file), open_table(file, header=header) as table:
        yield Rows(list(table.columns), good_rows(table), list(table.sample))


def cell(row: Row, column: str) -> str:
    """A cell as text; empty for a missing one."""
    value = row.fields.get(column)
    return "" if value is None else str(value)


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """A temporary folder with the files of a ZIP archive.

    Raises:
        DatasetError: the archive is damaged.
    """
    with TemporaryDirectory() as folder, reading(archive):
        with zipfile.ZipFile(archive) as files:
            files.extractall(folder)
        yield Path(folder)
