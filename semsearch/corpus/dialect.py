"""How the cells of a CSV or TSV file are separated, and whether quotes mean anything in it."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from semsearch.csvrecords import Dialect

#: In the order in which they are believed.
DELIMITERS = ",\t;|"

_OPENING_QUOTE = re.compile(r'(?:^|\t)"')


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
