"""Tables as they are published: separated by tabs, commas or semicolons, quoted or not."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from semsearch.datasets.textlines import Line, numbered_lines
from semsearch.errors import DatasetError

__all__ = ["Row", "find_column", "plain_name", "read_rows"]

#: Longer than any passage; Python's `csv` would take 131,072 characters.
CELL_MAX_CHARACTERS = 1 << 24

#: How much of the first line tells what separates cells.
HEAD_CHARACTERS = 100_000

#: A cell in quotes as CSV has it; quotes within are doubled.
_QUOTED = re.compile('"(?:[^"]|"")*"')


class Row(NamedTuple):
    """The cells of a row, and where it begins (``pairs.csv:418``)."""

    place: str
    cells: list[str]


def read_rows(file: Path) -> list[Row]:
    """The rows of a table but blank lines, the header among them.

    Tabs separate cells if there are two in the first line, else commas or semicolons. Cells
    between commas and semicolons can be quoted, as Python's `csv` has it. The tables with tabs
    that are published quote nothing, and their sentences begin with quotes of their own; only if
    all cells that begin with a quote are whole quoted cells are they read as such.

    Raises:
        DatasetError: the file cannot be read, is empty, or its quotes do not match.
    """
    lines = list(numbered_lines(file))
    first = next((line.text for line in lines if line.text.strip(" ")), "")
    separator = _separator(first[:HEAD_CHARACTERS])
    if separator == "\t" and not _is_quoted(lines):
        rows = [Row(line.place, line.text.split("\t")) for line in lines]
    else:
        rows = list(_csv_rows(lines, separator))
    rows = [row for row in rows if "".join(row.cells).strip(" ") or len(row.cells) > 1]
    if not rows:
        raise DatasetError(f"{file} is empty")
    return rows


def _separator(line: str) -> str:
    if line.count("\t") >= 2:
        return "\t"
    cells = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in "\t,;"}
    return max(",;\t", key=lambda mark: cells[mark])


def _is_quoted(lines: Sequence[Line]) -> bool:
    cells = [cell for line in lines for cell in line.text.split("\t") if cell.startswith('"')]
    return bool(cells) and all(_QUOTED.fullmatch(cell) for cell in cells)


def _csv_rows(lines: Sequence[Line], separator: str) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), CELL_MAX_CHARACTERS))
    reader = csv.reader((f"{line.text}\n" for line in lines), delimiter=separator, strict=True)
    start = 0
    try:
        for cells in reader:
            yield Row(lines[start].place, cells)
            start = reader.line_num
    except csv.Error as error:
        place = lines[min(start, len(lines) - 1)].place
        raise DatasetError(f"{place}: not a row of CSV: {error}") from None


def plain_name(name: str) -> str:
    """A column's name without what publishers vary: ``Sentence_1`` and ``sentence1`` are one."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def find_column(header: Sequence[str], names: Sequence[str]) -> int | None:
    """Where the first of these names stands in a header, compared as plain names."""
    plain = [plain_name(name) for name in header]
    return next((plain.index(name) for name in names if name in plain), None)
