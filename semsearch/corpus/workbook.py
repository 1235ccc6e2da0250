"""Reads a sheet of an Excel workbook (XLSX)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, time
from typing import TYPE_CHECKING, Any

from semsearch.corpus.roles import HEADER_ROWS, has_header, listed, numbered, shortened
from semsearch.corpus.table import Row, Table
from semsearch.errors import BadRowError, CorpusError, MissingExtraError, first_line, quantity

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

#: Excel's values for failed formulas.
_ERRORS = {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#GETTING_DATA"}


def read_workbook(
    source: Source, sheet: str | None, header: bool | None = None, wanted: Collection[str] = ()
) -> Table:
    """The table of the sheet with this name, or of the first visible one.

    Formulas have their saved values. For `header` and `wanted`, see `read_delimited`.

    Raises:
        MissingExtraError: the extra ``files`` is not installed.
        BadRowError: it is damaged, or not a workbook.
        CorpusError: the sheet does not exist or has no rows.
    """
    sheets = _sheets(source)
    if sheet is None:
        visible = [title for title in sheets if sheets[title].sheet_state == "visible"]
        sheet = next(iter([*visible, *sheets]), "")
    if sheet not in sheets:
        raise CorpusError(f"{source.name}: no sheet {sheet!r} (sheets: {listed(list(sheets))})")
    remark = f"sheet '{shortened(sheet)}'"
    name = f"{source.name}, {remark}"
    if others := [other for other in sheets if other != sheet]:
        remark += f" (others: {listed(others)})"
    records = _records(sheets[sheet], name)
    if not records:
        raise CorpusError(f"{source.name} has no rows: {remark}")
    cells = [record[1] for record in records[:HEADER_ROWS]]
    width = max(map(len, cells))
    above = _rows_above(cells, width)
    if above:
        remark += f"; {quantity(above, 'row')} with a single cell above it skipped"
    texts = [[*map(_as_text, row), *[""] * (width - len(row))] for row in cells[above:]]
    if has_header(texts, wanted) if header is None else header:
        columns = numbered(text or f"column_{number}" for number, text in enumerate(texts[0], 1))
        above += 1
    else:
        columns = [f"column {number}" for number in range(1, width + 1)]
        remark += "; no header"
    return Table(source.name, columns, _rows(records[above:], columns, name), remark=remark)


def _sheets(source: Source) -> dict[str, Any]:
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", "files", "reading XLSX") from None
    file = source.open_files.enter_context(source.on_disk().open("rb"))
    with _parsing(source.name):
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        return {sheet.title: sheet for sheet in book.worksheets}


@contextmanager
def _parsing(name: str) -> Iterator[None]:
    """Turn openpyxl's exceptions into a BadRowError, and silence what it does not support."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except Exception as error:  # damaged files make the library raise anything
        raise BadRowError(name, f"cannot be read as XLSX: {first_line(error)}") from error


def _rows_above(rows: list[list[Any]], width: int) -> int:
    """How many rows are above the table, such as a heading: they have a single cell."""
    above = 0
    while width > 1 and above < len(rows) - 1:
        if sum(cell is not None for cell in rows[above]) > 1:
            break
        above += 1
    return above


def _records(sheet: Any, name: str) -> list[tuple[int, list[Any]]]:
    """The non-empty rows with their numbers, without trailing blank cells."""
    records = []
    with _parsing(name):
        sheet.reset_dimensions()  # the declared size need not be true
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            cells = [_value(cell) for cell in row]
            while cells and cells[-1] is None:
                cells.pop()
            if cells:
                records.append((number, cells))
    return records


def _rows(
    records: Iterable[tuple[int, list[Any]]], columns: list[str], name: str
) -> Iterator[Row | BadRowError]:
    for number, cells in records:
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
