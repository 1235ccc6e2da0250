"""Reads CSV and TSV, after guessing the delimiter and whether cells are quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING

from semsearch.corpus.celltypes import cell_type
from semsearch.corpus.columns import distinct, shortened
from semsearch.corpus.header import USUAL_NAMES, has_header
from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table, look_ahead
from semsearch.csvrecords import Dialect, RecordReader, RecordTooLargeError
from semsearch.errors import BadRowError, CorpusError
from semsearch.texts import quantity

if TYPE_CHECKING:
    from semsearch.corpus.textstream import TextStream

#: In order of preference.
DELIMITERS = ",\t;|"

#: The first line by which Excel finds the delimiter.
_SEPARATOR = re.compile(r"\ufeff?sep=(.)\s*", re.IGNORECASE)

_OPENING_QUOTE = re.compile(r'(?:^|\t)"')

#: How a cell begins where a blank was written between the delimiter and the quote.
_BLANK_AND_QUOTE = ' "'

#: Cells without text, as programs write them; other formats have a null.
NOTHING = ("", "NaN", "nan")

#: The location and the cells of a record; an error in place of a bad one.
Record = tuple[str, list[str]] | BadRowError

#: How much of a first row is shown in messages.
CELLS_SHOWN, CELL_SHOWN_CHARACTERS = 4, 30


def read_delimited(
    text: TextStream,
    delimiters: str = DELIMITERS,
    header: bool | None = None,
    wanted: Collection[str] = (),
) -> Table:
    """The table of a CSV or TSV file.

    Args:
        text: the file.
        delimiters: the candidates.
        header: whether its first row names the columns; None to guess.
        wanted: names of columns that identify a header.

    Raises:
        CorpusError: it has no rows.
    """
    lines = text.lines()
    head, delimiters = without_declaration(look_ahead(lines, lambda: text.position), delimiters)
    dialect = guess_dialect(head, delimiters)
    reader = dialect.reader(chain(head, lines))
    records = _records(reader, text.name)
    remark = ""
    is_named = header or (header is None and has_header(_beginning(dialect, head), wanted))
    if is_named:
        columns = _header(records, text.name)
        expected = f"the header has {len(columns)}"
    else:
        first, records = _first_record(records, text.name)
        columns = [f"column {number}" for number in range(1, len(first) + 1)]
        expected = f"the first row has {len(columns)}"
        remark = _headerless(first, guessed=header is None)
    rows = _rows(records, columns, expected)

    sample = list(islice(rows, 1))
    if not sample:
        is_header = header or any(column.lower() in USUAL_NAMES for column in columns)
        advice = "" if is_header else "; if its first row is data, add --no-header"
        raise CorpusError(f"{text.name} has a header but no rows{advice}")
    while reader.line_num < len(head) and (row := next(rows, None)):
        sample.append(row)
    fields_of = [row for row in sample if isinstance(row, Row)]
    cell_types = {
        column: found
        for column in columns
        if (found := cell_type(row.fields.get(column, "") for row in fields_of))
    }
    return Table(
        text.name,
        columns,
        chain(sample, rows),
        cell_types,
        NOTHING,
        by_position=True,
        remark=remark,
        sample=fields_of,
        not_decoded=text.not_decoded,
    )


def _records(reader: RecordReader, name: str) -> Iterator[Record]:
    while True:
        source = f"{name}:{reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except RecordTooLargeError as error:
            yield BadRowError(source, str(error))
            continue
        except csv.Error as error:
            # The reader continues with the next line.
            reason = f"its quotes do not match ({error}, line {reader.line_num})"
            yield BadRowError(source, reason)
            continue
        if any(cells):  # unlike blank lines, and the empty rows of spreadsheets
            yield source, cells


def _header(records: Iterator[Record], name: str) -> Sequence[str]:
    record = next(records, None)
    if record is None:
        raise CorpusError(f"{name} is empty")
    if isinstance(record, BadRowError):
        raise record
    # R and pandas write the row names under an empty header.
    return distinct(cell.strip() or f"column_{number}" for number, cell in enumerate(record[1], 1))


def _beginning(dialect: Dialect, head: Sequence[str]) -> Iterator[list[str]]:
    """The readable records of the first lines; an empty one if there are none."""
    found = False
    with suppress(csv.Error):  # a stray quote, or a truncated record at the end of the look-ahead
        for cells in filter(None, dialect.reader(head)):
            found = True
            yield cells
    if not found:
        yield []


def _first_record(records: Iterator[Record], name: str) -> tuple[list[str], Iterator[Record]]:
    """The cells of the first readable record, and all records including it."""
    bad: list[Record] = []
    for record in records:
        if not isinstance(record, BadRowError):
            return record[1], chain(bad, (record,), records)
        bad.append(record)
        if len(bad) > LOOK_AHEAD_ROWS:
            break
    raise (bad[0] if bad and isinstance(bad[0], BadRowError) else CorpusError(f"{name} is empty"))


def _headerless(first: Sequence[str], *, guessed: bool) -> str:
    cells = ", ".join(f"'{shortened(cell, CELL_SHOWN_CHARACTERS)}'" for cell in first[:CELLS_SHOWN])
    more = ", …" if len(first) > CELLS_SHOWN else ""
    if guessed:
        return f"no header: its first row looks like data ({cells}{more}); if not, add --header"
    return f"no header: its first row is {cells}{more}"


def _rows(
    records: Iterator[Record], columns: Sequence[str], expected: str
) -> Iterator[Row | BadRowError]:
    width = len(columns)
    for record in records:
        if isinstance(record, BadRowError):
            yield record
            continue
        source, cells = record
        if len(cells) == width:
            fields = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            yield Row(source, fields)
        else:
            yield BadRowError(source, f"{quantity(len(cells), 'cell')} where {expected}")


def without_declaration(
    lines: Sequence[str], delimiters: str = DELIMITERS
) -> tuple[Sequence[str], str]:
    """Lines without the name of their delimiter, and the candidates for it."""
    found = _SEPARATOR.fullmatch(lines[0]) if lines else None
    if found:
        lines, delimiters = ["\n", *lines[1:]], found[1]  # a blank line keeps the line numbers
    return lines, delimiters


def guess_dialect(lines: Sequence[str], delimiters: str = DELIMITERS) -> Dialect:
    """The dialect that fits the beginning of a file best."""
    header = next((line for line in lines if not line.isspace()), "")
    # A delimiter that is not in the header separates nothing. A header of one column has none;
    # then the delimiter that is rarest in the texts does least harm.
    candidates = [
        Dialect(delimiter, quoted, spaced)
        for delimiter in ([one for one in delimiters if one in header] or delimiters)
        for quoted in _quotings(delimiter, lines)
        for spaced in _spacings(delimiter, quoted, lines)
    ]
    return max(candidates, key=lambda dialect: _fit(dialect, lines))


def _quotings(delimiter: str, lines: Sequence[str]) -> tuple[bool, ...]:
    """Many published TSV files are written without quoting: their quotes are part of the text."""
    if delimiter != "\t":
        return (True,)
    return (True, False) if any(map(_OPENING_QUOTE.search, lines)) else (False,)


def _spacings(delimiter: str, quoted: bool, lines: Sequence[str]) -> tuple[bool, ...]:
    """CSV written by hand can have a blank between the delimiter and the quote."""
    spaced = delimiter + _BLANK_AND_QUOTE
    return (False, True) if quoted and any(spaced in line for line in lines) else (False,)


def _fit(dialect: Dialect, lines: Sequence[str]) -> tuple[int, int, int]:
    """Lines of records as wide as the header, that width, and minus the quotes left in cells."""
    reader = dialect.reader(lines)
    fitting = width = line = stray = 0
    try:
        for cells in reader:
            width = width or len(cells)
            if len(cells) == width:
                fitting += reader.line_num - line
                stray -= sum(cell.startswith(_BLANK_AND_QUOTE) for cell in cells)
            line = reader.line_num
    except csv.Error:  # a stray quote, or a truncated record at the end of the look-ahead
        pass
    return fitting, width, stray
