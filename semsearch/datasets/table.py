"""Reads published tables, separated by tabs, commas or semicolons, quoted or not."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from semsearch.csvrecords import Dialect, RecordTooLargeError
from semsearch.datasets.textlines import Line, cells_of, numbered_lines
from semsearch.errors import DatasetError
from semsearch.texts import quantity

#: The part of the first line from which the separator is guessed.
HEAD_CHARACTERS = 100_000

#: A quoted cell of CSV; quotes inside are doubled.
_QUOTED = re.compile('"(?:[^"]|"")*"')


class Row(NamedTuple):
    """The cells of a row, and its location (``pairs.csv:418``)."""

    place: str
    cells: list[str]


def read_rows(file: Path, tabs: int = 2) -> Iterator[Row]:
    """The non-blank rows of a table, including the header, read lazily.

    Tabs separate cells if the first line has enough of them, else commas or semicolons. Cells
    separated by commas or semicolons can be quoted, as in Python's `csv`. Published tables with
    tabs are usually unquoted, with sentences that begin with quotes; their cells are unquoted only
    if all that begin with a quote are complete quoted cells.

    Args:
        file: the table.
        tabs: how many tabs in the first line are enough.

    Raises:
        DatasetError: the file cannot be read, is empty, or its quotes do not match.
    """
    first = next((line for line in numbered_lines(file) if line.text.strip(" ")), None)
    separator = _separator(first.text[:HEAD_CHARACTERS], tabs) if first else ","
    lines = numbered_lines(file)
    if separator == "\t" and not _is_quoted(numbered_lines(file)):
        rows: Iterator[Row] = (Row(line.place, cells_of(line, "\t")) for line in lines)
    else:
        rows = csv_rows(lines, separator)
    is_empty = True
    for row in rows:
        if len(row.cells) > 1 or "".join(row.cells).strip(" "):
            is_empty = False
            yield row
    if is_empty:
        raise DatasetError(f"{file} is empty")


def _separator(line: str, tabs: int) -> str:
    if line.count("\t") >= tabs:
        return "\t"
    cells = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in "\t,;"}
    return max(",;\t", key=lambda mark: cells[mark])


def _is_quoted(lines: Iterable[Line]) -> bool:
    """Whether some cells begin with a quote, and all of these are complete quoted cells."""
    quoted = False
    for line in lines:
        for cell in cells_of(line, "\t"):
            if cell.startswith('"'):
                quoted = True
                if not _QUOTED.fullmatch(cell):
                    return False
    return quoted


def csv_rows(lines: Iterable[Line], separator: str) -> Iterator[Row]:
    """The records of CSV lines, read with Python's `csv`.

    Raises:
        DatasetError: the quotes of a record do not match, or it is too large.
    """
    start: list[str] = []  # where the record begins

    def texts() -> Iterator[str]:
        for line in lines:
            if not start:
                start.append(line.place)
            yield f"{line.text}\n"

    try:
        for cells in Dialect(separator, quoted=True).reader(texts()):
            yield Row(start.pop(), cells)
    except csv.Error as error:
        reason = error if isinstance(error, RecordTooLargeError) else f"not a row of CSV: {error}"
        raise DatasetError(f"{start[0]}: {reason}") from None


def cells_in(row: Row, columns: Sequence[int], width: int | None) -> list[str]:
    """The cells of a row in some columns.

    Args:
        row: the row.
        columns: their positions.
        width: the number of columns of the table; None if rows may have more.

    Raises:
        DatasetError: the row ends before the last of the columns, or has more cells than the table
            has columns, such as after a comma in a text without quotes.
    """
    if len(row.cells) <= max(columns) or (width is not None and len(row.cells) > width):
        expected = max(columns) + 1 if width is None else width
        raise DatasetError(
            f"{row.place}: {quantity(len(row.cells), 'column')}; expected {expected}"
        )
    return [row.cells[column] for column in columns]


def plain_name(name: str) -> str:
    """A normalised column name: ``sentence1`` for ``Sentence_1``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def find_column(header: Sequence[str], names: Sequence[str]) -> int | None:
    """The position of the first of these names in a header, compared as plain names."""
    plain = [plain_name(name) for name in header]
    return next((plain.index(name) for name in names if name in plain), None)
