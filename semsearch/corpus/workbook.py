"""Reads a sheet of an Excel workbook (XLSX), row by row."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, time
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from semsearch.corpus.header import MAX_ROWS as HEADER_ROWS
from semsearch.corpus.header import has_header
from semsearch.corpus.roles import numbered, quoted_names, shortened
from semsearch.corpus.table import LOOK_AHEAD_ROWS, Row, Table
from semsearch.errors import BadRowError, CorpusError, MissingExtraError, first_line
from semsearch.texts import quantity

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

#: The most rows of a sheet. Files can claim a billion.
MAX_ROWS = 1 << 20

#: Excel's values for failed formulas.
_ERRORS = {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#GETTING_DATA"}

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
    sheets = _sheets(source)
    if sheet is not None and sheet not in sheets:
        raise CorpusError(f"{source.name}: no sheet {sheet!r} (sheets: {_listed(sheets)})")
    visible = [name for name, one in sheets.items() if one.sheet_state == "visible"]
    title = [*visible, *sheets][0] if sheet is None else sheet
    name = f"{source.name}, sheet '{shortened(title)}'"
    remark = f"sheet '{shortened(title)}'"
    if others := [other for other in sheets if other != title]:
        remark += f" (others: {_listed(others)})"
    records = _filled(sheets[title], name)
    head = list(islice(records, HEADER_ROWS))
    cells = [record[1] for record in head if not isinstance(record, BadRowError)]
    if not cells:
        if head and isinstance(head[0], BadRowError):
            raise head[0]
        advice = "; read another one with --sheet" if others else ""
        raise CorpusError(f"{source.name} has no rows: {remark}{advice}")
    width = max(map(len, cells))
    above = _rows_above(cells, width)
    if above:
        remark += f"; {quantity(above, 'row')} with a single cell above it skipped"
    first, *below = cells[above:]
    if header is None:
        texts = ([_as_text(cell) for cell in _filled_up(row, width)] for row in (first, *below))
        header = has_header(texts, wanted)
    if header:
        names = enumerate(_filled_up(first, width), 1)
        columns = numbered(_as_text(cell) or f"column_{number}" for number, cell in names)
    else:
        columns = [f"column {number}" for number in range(1, width + 1)]
        remark += "; no header"
    rows = _rows(chain(head[above + header :], records), columns, name)
    look_at = list(islice(rows, LOOK_AHEAD_ROWS))
    if not look_at:
        raise CorpusError(
            f"{source.name}, {remark} has a header but no rows; if its first row is data, add "
            "--no-header"
        )
    sample = [row for row in look_at if isinstance(row, Row)]
    return Table(source.name, columns, chain(look_at, rows), remark=remark, sample=sample)


def _sheets(source: Source) -> dict[str, Any]:
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "files", "reading XLSX") from None
    file = source.seekable()
    if not zipfile.is_zipfile(file):
        reason = "is damaged, or not an XLSX workbook; name another format with --input-format"
        raise BadRowError(source.name, reason)
    try:
        with warnings.catch_warnings(action="ignore"):  # about unsupported features
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
    except Exception as error:  # damaged files make the library raise anything
        raise _unreadable(source.name, error) from error
    if not sheets:
        raise BadRowError(source.name, "has no sheets")
    return sheets


def _rows_above(rows: list[list[Any]], width: int) -> int:
    """How many rows are above the table, such as a heading: they have a single cell."""
    above = 0
    while width > 1 and above < len(rows) - 1:
        if sum(cell is not None for cell in rows[above]) > 1:
            break
        above += 1
    return above


def _filled(sheet: Any, name: str) -> Iterator[_NumberedCells | BadRowError]:
    """The non-empty rows with their numbers, without trailing blank cells."""
    sheet.reset_dimensions()  # the declared size need not be true
    rows = sheet.iter_rows(values_only=True, max_row=MAX_ROWS)
    number = 0
    while True:
        try:
            with warnings.catch_warnings(action="ignore"):
                found = next(rows, None)
        except Exception as error:  # as above; the rows before it are kept
            yield _unreadable(f"{name}, after row {number}", error)
            return
        if found is None:
            return
        number += 1
        cells = [_value(cell) for cell in found]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


def _filled_up(cells: list[Any], width: int) -> list[Any]:
    return cells + [None] * (width - len(cells))


def _rows(
    records: Iterable[_NumberedCells | BadRowError], columns: list[str], name: str
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
    from openpyxl.utils.escape import unescape

    return None if cell == "" or cell in _ERRORS else unescape(cell)


def _as_text(cell: Any) -> str:
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    return "" if cell is None else str(cell).strip()


def _listed(sheets: Iterable[str]) -> str:
    titles = list(sheets)
    more = len(titles) - SHEETS_SHOWN
    shown = quoted_names(titles[:SHEETS_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _unreadable(name: str, error: Exception) -> BadRowError:
    return BadRowError(name, f"cannot be read as XLSX: {first_line(error)}")
