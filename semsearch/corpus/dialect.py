"""How the cells of a CSV or TSV file are separated, and whether quotes mean anything in it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from semsearch.corpus.table import MAX_ROW_BYTES, MAX_ROW_VALUES

__all__ = ["DELIMITERS", "Dialect", "RecordReader", "RecordTooLargeError", "guess_dialect"]

#: In the order in which they are believed.
DELIMITERS = ",\t;|"

_OPENING_QUOTE = re.compile(r'(?:^|\t)"')


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


def guess_dialect(lines: Sequence[str], delimiters: str = DELIMITERS) -> Dialect:
    """The dialect that fits the beginning of a file best."""
    header = next((line for line in lines if not line.isspace()), "")
    # What the header does not hold separates nothing. A header of one column holds none of them;
    # then the one that its texts hold least does least harm.
    candidates = [
        Dialect(delimiter, quoted)
        for delimiter in ([one for one in delimiters if one in header] or delimiters)
        for quoted in _quotings(delimiter, lines)
    ]
    return max(candidates, key=lambda dialect: _fit(dialect, lines))


def _quotings(delimiter: str, lines: Sequence[str]) -> tuple[bool, ...]:
    """Many a published TSV file is written without quoting: its quotes are part of the text."""
    if delimiter != "\t":
        return (True,)
    return (True, False) if any(map(_OPENING_QUOTE.search, lines)) else (False,)


def _fit(dialect: Dialect, lines: Sequence[str]) -> tuple[int, int]:
    """How many lines belong to records as wide as the header, and how wide that is."""
    reader = dialect.reader(lines)
    fitting = width = line = 0
    try:
        for cells in reader:
            width = width or len(cells)
            if len(cells) == width:
                fitting += reader.line_num - line
            line = reader.line_num
    except csv.Error:  # a stray quote, or a record cut off at the end of the look-ahead
        pass
    return fitting, width
