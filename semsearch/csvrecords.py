"""Reads records of CSV and TSV, with limits on the memory of each."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from semsearch.limits import MAX_ROW_BYTES, MAX_ROW_VALUES

#: A cell that was certainly quoted when it was written, with doubled quotes inside.
_QUOTED = re.compile(r'\A"((?:[^"]*"")+[^"]*)"\Z')


def _without_quotes(quoted: re.Match[str]) -> str:
    return quoted[1].replace('""', '"')


class Dialect(NamedTuple):
    """The delimiter, whether cells can be quoted, and whether blanks before cells are left out.

    Programs that quote only some cells of TSV can begin after the rows that were looked at; so a
    cell with doubled quotes in quotes is read as quoted in any case.
    """

    delimiter: str
    quoted: bool
    spaced: bool = False

    def reader(self, lines: Iterable[str]) -> RecordReader:
        """The records of these lines, as lists of cells."""
        return RecordReader(lines, self)


class RecordTooLargeError(csv.Error):
    """A record exceeds the limits of a row."""


class RecordReader:
    """Python's `csv.reader` with a limit on the size of a record.

    Args:
        lines: the lines of a file.
        dialect: delimiter and quoting.

    Iteration raises csv.Error if quotes do not match and RecordTooLargeError for a record that is
    too large; after both, it continues with the next line.
    """

    def __init__(self, lines: Iterable[str], dialect: Dialect) -> None:
        # Python's limit applies to the whole process, so it is never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
        self._lines = iter(lines)
        self._delimiter = dialect.delimiter
        self._quoted = dialect.quoted
        self._characters = self._delimiters = 0
        self._has_doubled_quotes = False
        self._reader = csv.reader(
            iter(self._next_line, None),  # a generator would end after an error
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
            skipinitialspace=dialect.spaced,
            strict=True,
        )

    @property
    def line_num(self) -> int:
        """The number of lines read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self._characters = self._delimiters = 0
        self._has_doubled_quotes = False
        cells = next(self._reader)
        if self._has_doubled_quotes and not self._quoted:
            return [_QUOTED.sub(_without_quotes, cell) for cell in cells]
        return cells

    def _next_line(self) -> str:
        line = next(self._lines, None)
        if line is None:
            raise StopIteration
        # A continuation line without a quote belongs to a single cell.
        if not self._characters or '"' in line:
            self._delimiters += line.count(self._delimiter)
        self._characters += len(line)
        self._has_doubled_quotes = self._has_doubled_quotes or '""' in line
        if self._delimiters > MAX_ROW_VALUES:
            raise RecordTooLargeError(f"more than {MAX_ROW_VALUES:,} cells")
        # A single cell ends at csv's own limit, which is half of this.
        if self._characters > 2 * MAX_ROW_BYTES:
            raise RecordTooLargeError("its quotes do not match")
        return line
