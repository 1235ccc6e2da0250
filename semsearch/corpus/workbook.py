"""Reads a sheet of an Excel workbook (XLSX), row by row."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, time
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from semsearch.corpus.header import MAX_ROWS as HEADER_ROWS
from semsearch.corpus.header import has_header
from semsearch.corpus.roles import USUAL, numbered, plain_name, quoted_names, shortened
from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table
from semsearch.errors import (
    BadRowError,
    CorpusError,
    EmptyCorpusError,
    MissingExtraError,
    UnknownFormatError,
    first_line,
)
from semsearch.texts import quantity

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

#: The most rows of a sheet. Files can claim a billion.
MAX_ROWS = 1 << 20

#: Excel's values for failed formulas.
_ERRORS = {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#GETTING_DATA"}

#: Control characters, and underscores before what looks like one.
_ESCAPED = re.compile("_x(00[01][0-9A-Fa-f]|005F(?=_x[0-9A-Fa-f]{4}_))_")

SHEETS_SHOWN = 20

_NumberedCells = tuple[int, list[Any]]


def read_workbook(
    source: Source, sheet: str | None, header: bool | None = None, wanted: Collection[str] = ()
) -> Table:
    """The table of one sheet of a workbook. Formulas have their saved values.

    Args:
        source: the workbook.
        sheet: the name of the sheet; None for the first visible one.
        header: whether its first row names the columns; None to guess.
        wanted: names of columns that identify a header.

    Raises:
        MissingExtraError: the extra ``files`` is not installed.
        BadRowError: it is damaged, or not a workbook.
        CorpusError: the sheet does not exist or has no rows.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "files", "reading XLSX") from None
    try:
        file = source.seekable()
        if not zipfile.is_zipfile(file):
            raise CorpusError(
                "is damaged, or not an XLSX workbook; name another format with --input-format"
            )
        with warnings.catch_warnings(action="ignore"):  # about unsupported features
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = {one.title: one for one in book.worksheets}
    except Exception as error:  # damaged files make the library raise anything
        raise _unreadable(source.name, error) from error
    if not sheets:
        raise BadRowError(source.name, "has no sheets")
    if sheet is not None and sheet not in sheets:
        raise UnknownFormatError(f"{source.name}: no sheet {sheet!r} (sheets: {_listed(sheets)})")
    visible = [name for name, one in sheets.items() if one.sheet_state == "visible"]
    title = [*visible, *sheets][0] if sheet is None else sheet
    others = [other for other in sheets if other != title]
    return _table(source, sheets[title], others, header, wanted)


def _table(
    source: Source, sheet: Any, others: list[str], header: bool | None, wanted: Collection[str]
) -> Table:
    remark = f"sheet '{shortened(sheet.title)}'"
    advice = ""
    if others:
        remark += f" (others: {_listed(others)})"
        advice = "; read another one with --sheet"
    name = f"{source.name}, sheet '{shortened(sheet.title)}'"
    records = _filled(sheet, name)
    head: list[_NumberedCells] = []
    for record in islice(records, HEADER_ROWS):
        if isinstance(record, BadRowError):
            if not head:
                raise record
            records = iter((record,))  # after the rows before it
            break
        head.append(record)
    if not head:
        raise EmptyCorpusError(f"{source.name} has no rows: {remark}{advice}")
    width = max(len(cells) for _, cells in head)
    above = 0  # rows above the table, such as a heading
    while width > 1 and len(head) > 1 and sum(cell is not None for cell in head[0][1]) == 1:
        head.pop(0)
        above += 1
    if above:
        remark += f"; {above} row{'s' if above > 1 else ''} with a single cell above it skipped"
    if header is None:
        texts = [[_as_text(cell) for cell in cells] for _, cells in head]
        header = has_header((cells + [""] * (width - len(cells)) for cells in texts), wanted)
    if header:
        _, names = head.pop(0)
        names += [None] * (width - len(names))
        columns = numbered(
            _as_text(cell) or f"column_{number}" for number, cell in enumerate(names, 1)
        )
    else:
        columns = [f"column {number}" for number in range(1, width + 1)]
        remark += "; no header"
    rows = _rows(chain(head, records), columns, name)
    sample = list(islice(rows, LOOK_AHEAD_ROWS))
    if not sample:
        name = f"{source.name}, {remark}"
        if not any(plain_name(column) in USUAL for column in columns):
            advice += "; if its first row is data, add --no-header"
        raise EmptyCorpusError(f"{name} has a header but no rows{advice}")
    return Table(
        source.name,
        columns,
        chain(sample, rows),
        remark=remark,
        sample=[row for row in sample if isinstance(row, Row)],
    )


def _filled(sheet: Any, name: str) -> Iterator[_NumberedCells | BadRowError]:
    """The non-empty rows with their numbers, without trailing blank cells."""
    sheet.reset_dimensions()  # the declared size need not be true
    rows = sheet.iter_rows(values_only=True)
    for number in range(1, MAX_ROWS + 2):
        try:
            with warnings.catch_warnings(action="ignore"):
                found: Sequence[Any] | None = next(rows, None)
        except Exception as error:  # as above; the rows before it are kept
            yield _unreadable(f"{name}, after row {number - 1}", error)
            return
        if found is None:
            return
        if number > MAX_ROWS:
            yield BadRowError(name, f"more than {MAX_ROWS:,} rows")
            return
        cells = [_value(cell) for cell in found]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


def _rows(
    records: Iterable[_NumberedCells | BadRowError], columns: Sequence[str], name: str
) -> Iterator[Row | BadRowError]:
    for record in records:
        if isinstance(record, BadRowError):
            yield record
            continue
        number, cells = record
        source = f"{name}, row {number}"
        if len(cells) > len(columns):
            expected = quantity(len(columns), "column")
            reason = f"{quantity(len(cells), 'cell')} where the sheet has {expected}"
            yield BadRowError(source, reason)
        else:
            pairs = zip(columns, cells, strict=False)  # trailing blank cells are missing
            yield Row(source, {column: cell for column, cell in pairs if cell is not None})


def _value(cell: Any) -> Any:
    """The value of a cell, as it is shown in Excel; None for an empty one."""
    if not isinstance(cell, str):
        return cell
    return None if cell == "" or cell in _ERRORS else _ESCAPED.sub(_unescaped, cell)


def _unescaped(found: re.Match[str]) -> str:
    """A character that Excel writes as ``_x000D_``; ``_x005F_`` is an underscore before these."""
    letter = chr(int(found[1], 16))
    return letter if letter in "\t\n\r_" else ""


def _as_text(cell: Any) -> str:
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    return "" if cell is None else str(cell).strip()


def _listed(sheets: Iterable[str]) -> str:
    titles = list(sheets)
    shown = quoted_names(titles[:SHEETS_SHOWN])
    more = len(titles) - SHEETS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _unreadable(name: str, error: Exception) -> BadRowError:
    own = isinstance(error, CorpusError)
    return BadRowError(name, str(error) if own else f"cannot be read as XLSX: {first_line(error)}")
