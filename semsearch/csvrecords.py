"""Records of CSV and TSV, none of which takes more memory than a row may."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from semsearch.limits import MAX_ROW_BYTES, MAX_ROW_VALUES


class Dialect(NamedTuple):
    """What separates cells, and whether a quote at the beginning of one encloses it."""

    delimiter: str
    quoted: bool

    def reader(self, lines: Iterable[str]) -> RecordReader:
        """The records of these lines, as lists of cells."""
        return RecordReader(lines, self)


class RecordTooLargeError(csv.Error):
    """A record has more cells, or lines, than a row of any corpus."""


class RecordReader:
    """Python's reader of CSV, with a limit to one record, whose quotes may go on and on.

    Args:
        lines: what it reads.
        dialect: how.

    Iterating raises csv.Error where quotes do not match, RecordTooLargeError at too large a record;
    both take up again with the next line.
    """

    def __init__(self, lines: Iterable[str], dialect: Dialect) -> None:
        # Python's own limit holds for the whole process, so it is only ever raised.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
        self._lines = iter(lines)
        self._delimiter = dialect.delimiter
        self._characters = self._delimiters = 0
        self._reader = csv.reader(
            iter(self._next_line, None),  # a generator would not go on after an error
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
            strict=True,
        )

    @property
    def line_num(self) -> int:
        """How many lines were read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self._characters = self._delimiters = 0
        return next(self._reader)

    def _next_line(self) -> str:
        line = next(self._lines)
        # A further line without a quote is all inside of one cell.
        if not self._characters or '"' in line:
            self._delimiters += line.count(self._delimiter)
        self._characters += len(line)
        if self._delimiters > MAX_ROW_VALUES:
            raise RecordTooLargeError(f"more than {MAX_ROW_VALUES:,} cells")
        # A single cell ends at csv's own limit, which is half of this.
        if self._characters > 2 * MAX_ROW_BYTES:
            raise RecordTooLargeError("its quotes do not match")
        return line
