"""Reads CSV and TSV, after guessing the delimiter and whether cells are quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.corpus.celltypes import column_type
from semsearch.corpus.roles import HEADER_ROWS, USUAL, has_header, numbered, plain_name
from semsearch.corpus.table import MAX_ROW_CHARACTERS, Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError, quantity

if TYPE_CHECKING:
    from semsearch.corpus.encodings import TextStream

#: In order of preference.
DELIMITERS = ",\t;|"

#: The first line by which Excel finds the delimiter.
_SEPARATOR = re.compile(r"\ufeff?sep=(.)\s*", re.IGNORECASE)
_OPENING_QUOTE = re.compile(r'(?:^|\t)"')
#: Lines above a header, in which exports tell what they are.
MAX_LINES_ABOVE = 5

#: The location and the cells of a record; an error in place of a bad one.
_Record = tuple[str, list[str]] | BadRowError


class Dialect(NamedTuple):
    """The delimiter, whether cells can be quoted, and whether blanks before cells are left out."""

    delimiter: str
    quoted: bool
    spaced: bool = False

    def reader(self, lines: Iterable[str]) -> Any:
        """Python's reader of these lines."""
        # Python's limit applies to the whole process, so it is never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_CHARACTERS))
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            skipinitialspace=self.spaced,
            strict=True,
        )


def read_delimited(
    text: TextStream,
    delimiters: str = DELIMITERS,
    header: bool | None = None,
    wanted: Collection[str] = (),
) -> Table:
    """The table of a CSV or TSV file with one of these delimiters.

    Its first row is a header if `header` says so, or else by `has_header`, which takes `wanted`.

    Raises:
        CorpusError: it has no rows.
    """
    lines = text.lines()
    head = look_ahead(lines)
    if head and (declared := _SEPARATOR.fullmatch(head[0])):
        head[0], delimiters = "\n", declared[1]  # a blank line keeps the line numbers
    above = _lines_above(head, delimiters)
    head[:above] = ["\n"] * above
    reader = guess_dialect(head, delimiters).reader(chain(head, lines))
    records = _records(reader, text.name)
    beginning = list(islice(records, HEADER_ROWS))
    if not beginning:
        raise CorpusError(f"{text.name} is empty")
    if isinstance(beginning[0], BadRowError):
        raise CorpusError(str(beginning[0]))
    cells = beginning[0][1]
    remark = ""
    if header is None:
        readable = [record[1] for record in beginning if not isinstance(record, BadRowError)]
        header = has_header(readable, wanted)
        remark = "" if header else ": its first row looks like data; if it is not, add --header"
    if header:
        # R and pandas write the row names under an empty header.
        columns = numbered(cell.strip() or f"column_{n}" for n, cell in enumerate(cells, 1))
        remark = f"{quantity(above, 'line')} above the header skipped" if above else ""
    else:
        columns = [f"column {number}" for number in range(1, len(cells) + 1)]
        remark = f"no header{remark}"
    if len(columns) == 1 and (sign := _unknown_delimiter(head)):
        remark = f"every line holds {sign!r}: if it separates cells, put it in a first line 'sep='"
    records = chain(beginning[1:] if header else beginning, records)
    rows = _rows(records, columns, cells if header else None)
    sample = look_ahead(rows)
    found = {
        column: column_type(row.fields.get(column, "") for row in sample if isinstance(row, Row))
        for column in columns
    }
    types = {column: kind for column, kind in found.items() if kind is not None}
    return Table(text.name, columns, chain(sample, rows), types, remark)


def _records(reader: Any, name: str) -> Iterator[_Record]:
    while True:
        source = f"{name}:{reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The reader continues with the next line.
            reason = f"its quotes do not match ({error}, line {reader.line_num})"
            yield BadRowError(source, reason)
            continue
        if any(cells):  # unlike blank lines, and the empty rows of spreadsheets
            yield source, cells


def _rows(
    records: Iterator[_Record], columns: Sequence[str], header: list[str] | None
) -> Iterator[Row | BadRowError]:
    """The rows of the records below the header, if there is one."""
    width, last = len(columns), header[-1] if header else None
    expected = f"the {'header' if header else 'first row'} has {width}"
    for record in records:
        if isinstance(record, BadRowError):
            yield record
            continue
        source, cells = record
        if cells[-1] == last and [cells[0].lstrip("\ufeff"), *cells[1:]] == header:
            yield BadRowError(source, "repeats the header")  # files were joined
        elif len(cells) == width:
            fields = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            yield Row(source, fields)
        else:
            yield BadRowError(source, f"{quantity(len(cells), 'cell')} where {expected}")


def _lines_above(lines: Sequence[str], delimiters: str) -> int:
    """How many lines are above a header with a usual name, such as the date of an export."""
    for number, line in enumerate(lines[:MAX_LINES_ABOVE]):
        for mark in delimiters:
            cells = [cell.strip(' "\r\n') for cell in line.split(mark)]
            is_header = len(cells) > 1 and all(cells) and any(plain_name(c) in USUAL for c in cells)
            if is_header and not any(mark in above for above in lines[:number]):
                return number
    return 0


def _unknown_delimiter(lines: Sequence[str]) -> str | None:
    """A sign that each line holds equally often, and that is no delimiter of those known."""
    first, *others = [line for line in lines if not line.isspace()]
    signs = [sign for sign in first.strip() if not (sign.isalnum() or sign in " _'\"-.,!?")]
    counts = {sign: first.count(sign) for sign in signs}
    return next((s for s in signs if all(one.count(s) == counts[s] for one in others)), None)


def guess_dialect(lines: Sequence[str], delimiters: str = DELIMITERS) -> Dialect:
    """The dialect that fits the beginning of a file best."""
    header = next((line for line in lines if not line.isspace()), "")
    # Many published TSV files are written without quoting: their quotes are part of the text.
    tab_quotings = (True, False) if any(map(_OPENING_QUOTE.search, lines)) else (False,)
    # A delimiter that is not in the header separates nothing. A header of one column has none;
    # then the delimiter that is rarest in the texts does least harm.
    candidates = [
        # Files written by hand can have a blank between the delimiter and the quote.
        Dialect(delimiter, quoted, quoted and any(f'{delimiter} "' in line for line in lines))
        for delimiter in ([mark for mark in delimiters if mark in header] or delimiters)
        for quoted in (tab_quotings if delimiter == "\t" else (True,))
    ]
    return max(candidates, key=lambda dialect: _fit(dialect, lines))


def _fit(dialect: Dialect, lines: Sequence[str]) -> tuple[int, int]:
    """The number of lines of records as wide as the header, and that width."""
    reader = dialect.reader(lines)
    fitting = width = line = 0
    with suppress(csv.Error):  # a stray quote, or a truncated record at the end of the look-ahead
        for cells in reader:
            width = width or len(cells)
            if len(cells) == width:
                fitting += reader.line_num - line
            line = reader.line_num
    return fitting, width
