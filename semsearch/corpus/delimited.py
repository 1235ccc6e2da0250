"""Reads CSV and TSV: finds the delimiter, the quotes and the header, and skips what is no row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

from semsearch.corpus.celltypes import column_types, is_number
from semsearch.corpus.encodings import TextStream
from semsearch.corpus.roles import (
    HEADER_ROWS,
    ID,
    NUMBER,
    USUAL,
    Reading,
    name_columns,
    plain_name,
)
from semsearch.corpus.table import MAX_ROW_CHARACTERS, LeftOut, Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError, quantity

#: In order of preference.
DELIMITERS = ",\t;|"

#: The first line by which Excel finds the delimiter.
_SEPARATOR = re.compile(r"\ufeff?sep=(.)\s*", re.IGNORECASE)
_OPENING_QUOTE = re.compile(r'(?:^|\t)"')
#: The second line of a table in Markdown.
_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?\|?\s*")
#: Lines above a header, in which exports tell what they are.
MAX_LINES_ABOVE = 20
#: Signs of a text, which separate no cells.
_TEXT_SIGNS = " _'\"-.,!?()[]{}<>/%&*+=@#$€£"
#: The longest unit, and what a line of units holds for a column of texts.
_UNIT_CHARACTERS = 20
_NO_UNIT = re.compile(r"\W*(?:string|text|str|char|name|id)?\W*", re.IGNORECASE)

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


def read_delimited(text: TextStream, delimiters: str, reading: Reading) -> Table:
    """The table of a CSV or TSV file with one of these delimiters, unless `reading` names one.

    Its first row is a header if `reading` says so, or else by `has_header`.

    Raises:
        CorpusError: it has no rows, or its delimiter cannot be told.
    """
    lines = text.lines()
    head = look_ahead(lines)
    remarks = []
    head[: reading.skip_lines or 0] = ["\n"] * (reading.skip_lines or 0)  # keeps the line numbers
    if head and (declared := _SEPARATOR.fullmatch(head[0])):
        head[0], delimiters = "\n", declared[1]
    delimiters = reading.delimiter or delimiters
    if _is_markdown(head):
        lines, head, delimiters = map(_cells_alone, lines), list(map(_cells_alone, head)), "|"
    elif reading.skip_lines is None and reading.header is not False:
        above = _lines_above(head, delimiters)
        head[:above] = ["\n"] * above
        remarks += [f"{quantity(above, 'line')} above the header skipped"] if above else []
    if reading.delimiter is None and (sign := _rare_delimiter(head, delimiters, text.name)):
        delimiters = sign
        remarks.append(f"cells separated by {sign!r}")
    dialect = guess_dialect(head, delimiters)
    records = _records(dialect.reader(chain(head, lines)), text.name)
    beginning = list(islice(records, HEADER_ROWS))
    if not beginning:
        raise CorpusError(f"{text.name} is empty")
    if isinstance(beginning[0], BadRowError):
        raise CorpusError(str(beginning[0]))
    readable = [record[1] for record in beginning if not isinstance(record, BadRowError)]
    columns, header = name_columns(readable, reading)
    if not header:
        advice = ": its first row looks like data; if it is not, add --header"
        remarks.append(f"no header{advice if reading.header is None else ''}")
    elif len(columns) == 1 and dialect.delimiter != delimiters[0]:  # commas separate nothing
        advice = "prose is read whole from a .txt file"
        remarks.append(f"each line is a document: the header has one cell; {advice}")
    left_out = LeftOut()
    records = chain(beginning[header:], records)
    rows = _rows(records, columns, readable[0] if header else None, left_out)
    sample = look_ahead(rows)
    if header and (units := _units(sample)):
        left_out.add("row of units", units.source)
        sample = sample[1:]
    cells_below = [row.fields for row in sample if isinstance(row, Row)]
    types = column_types(columns, cells_below, reading.decimal, reading.dates)
    remarks += [f"{column}: {kind.note}" for column, kind in types.items() if kind.note]
    parsed = {column: kind for column, kind in types.items() if kind.parse}
    return Table(text.name, columns, chain(sample, rows), parsed, "; ".join(remarks), left_out)


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
    records: Iterator[_Record],
    columns: Sequence[str],
    header: list[str] | None,
    left_out: LeftOut,
) -> Iterator[Row | BadRowError]:
    """The rows of the records below the header, if there is one."""
    width, last = len(columns), header[-1] if header else None
    expected = f"the {'header' if header else 'first row'} has {width}"
    has_ids = width > 1 and plain_name(columns[0]) in ID
    for record in records:
        if isinstance(record, BadRowError):
            yield record
            continue
        source, cells = record
        if len(cells) == width + 1 and not cells[-1]:
            cells.pop()  # a delimiter ends each row, but not the header
        if cells[-1] == last and [cells[0].lstrip("\ufeff"), *cells[1:]] == header:
            left_out.add("repeated header", source)  # files were joined
        elif cells[0].startswith("#") and (
            len(cells) != width or (has_ids and cells[0][1:2] == " ")
        ):
            left_out.add("comment", source)
        elif len(cells) == width:
            fields = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            yield Row(source, fields)
        else:
            yield BadRowError(source, f"{quantity(len(cells), 'cell')} where {expected}")


def _units(sample: Sequence[Row | BadRowError]) -> Row | None:
    """The first row, if it holds the units of the numbers below it."""
    rows = [row for row in sample[:HEADER_ROWS] if isinstance(row, Row)]
    if len(rows) < 3 or rows[0] is not sample[0]:
        return None
    first, *others = rows
    found = False
    for column, cell in first.fields.items():
        below = [row.fields[column] for row in others if column in row.fields]
        if len(below) > 1 and all(map(is_number, below)):
            if is_number(cell) or len(cell) > _UNIT_CHARACTERS:
                return None
            found = True
        elif not _NO_UNIT.fullmatch(cell):
            return None
    return first if found else None


def _is_markdown(lines: Sequence[str]) -> bool:
    """Whether these are the lines of a table in Markdown."""
    first, second, *_ = [*(line for line in lines[:MAX_LINES_ABOVE] if line.strip()), "", ""]
    return "|" in first and _RULE.fullmatch(second) is not None


def _cells_alone(line: str) -> str:
    """A line of a table in Markdown without the outer bars; its rule is a blank line."""
    if _RULE.fullmatch(line):
        return "\n"
    return "|".join(cell.strip() for cell in line.strip().strip("|").split("|")) + "\n"


def _lines_above(lines: Sequence[str], delimiters: str) -> int:
    """How many lines are above the header, such as the date of an export or comments.

    The header is the first line with a usual name, or with three names, from which on all lines
    have the same number of cells.
    """
    if lines and plain_name(lines[0]) in USUAL:  # the header of a single column
        return 0
    for number, line in enumerate(lines[:MAX_LINES_ABOVE]):
        for mark in delimiters:
            cells = [cell.strip(' "\r\n\ufeff') for cell in line.split(mark)]
            is_named = any(plain_name(cell) in USUAL for cell in cells)
            if len(cells) < 2 or not all(cells) or any(map(NUMBER.fullmatch, cells)):
                continue
            if number == 0 and (is_named or not cells[0].startswith("#")):
                return 0
            widths = [len(one.split(mark)) for one in lines[:number] if one.strip()]
            if (is_named or len(cells) > 2) and len(cells) not in widths:
                below = [one for one in lines[number:][:HEADER_ROWS] if not one.startswith("#")]
                _, width, share = _fit(Dialect(mark, True), below)
                if width == len(cells) and share > _CONSISTENT:
                    return number
    return 0


#: The share of lines of records as wide as the header, so that it is one.
_CONSISTENT = 0.8


def _rare_delimiter(lines: Sequence[str], delimiters: str, name: str) -> str | None:
    """An unusual sign between cells: each line holds it equally often, and no usual one is there.

    Raises:
        CorpusError: no column has a usual name, so that the sign may belong to a text.
    """
    filled = [line for line in lines if not line.isspace()]
    if len(filled) < 2 or any(mark in filled[0] for mark in delimiters):
        return None
    first, *others = filled
    for sign in dict.fromkeys(first.strip()):
        if sign.isalnum() or sign in _TEXT_SIGNS:
            continue
        if all(line.count(sign) == first.count(sign) for line in others):
            if any(plain_name(cell) in USUAL for cell in first.strip().split(sign)):
                return sign
            raise CorpusError(
                f"{name}: every line holds {sign!r} equally often: if it separates cells, add "
                f"--delimiter {sign!r}; if the file has one column, add --delimiter ,"
            )
    return None


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
    return max(candidates, key=lambda dialect: _fit(dialect, lines)[:2])


def _fit(dialect: Dialect, lines: Sequence[str]) -> tuple[int, int, float]:
    """The number of lines of records as wide as the header, that width, and their share."""
    reader = dialect.reader(lines)
    fitting = width = line = 0
    with suppress(csv.Error):  # a stray quote, or a truncated record at the end of the look-ahead
        for cells in reader:
            width = width or len(cells)
            if len(cells) == width or not any(cells):
                fitting += reader.line_num - line
            line = reader.line_num
    return fitting, width, fitting / max(line, 1)
