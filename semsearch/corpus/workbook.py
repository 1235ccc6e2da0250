"""Reads a sheet of an Excel workbook (XLSX)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from datetime import datetime, time
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile

from semsearch.corpus.conversion import converter, parsing
from semsearch.corpus.formats import CorpusFormat
from semsearch.corpus.roles import HEADER_ROWS, Reading, listed, name_columns, shortened
from semsearch.corpus.sources import Source
from semsearch.corpus.table import LeftOut, Row, Table
from semsearch.errors import BadRowError, CorpusError, quantity

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_NO_VALUE = "formula without a saved value: open and save it in a spreadsheet program"
#: Excel's values for failed formulas.
_ERRORS = {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#GETTING_DATA"}


class _Sheet(NamedTuple):
    """A sheet of a workbook.

    Args:
        name: its name.
        others: the names of the other sheets.
        rows: the non-empty rows with their numbers, without trailing blank cells.
        hidden: the number of hidden rows.
        left_out: formulas without a saved value, and charts.
    """

    name: str
    others: list[str]
    rows: list[tuple[int, list[Any]]]
    hidden: int
    left_out: LeftOut


def read_workbook(source: Source, reading: Reading) -> Table:
    """The table of the sheet that is named, or of the first visible one.

    Formulas have their saved values; merged cells all have the value of the first one. For its
    header, see `read_delimited`.

    Raises:
        BadRowError: it is damaged, not a workbook, or needs too much time or memory.
        CorpusError: the sheet does not exist or has no rows.
    """
    try:
        found: _Sheet = converter.run(_read_sheet, source.on_disk(), reading.sheet)
    except CorpusError as error:
        raise BadRowError(source.name, str(error)) from None
    if not found.name:
        sheets = listed(found.others)
        raise CorpusError(f"{source.name}: no sheet {reading.sheet!r} (sheets: {sheets})")
    remark = f"sheet '{shortened(found.name)}'"
    name = f"{source.name}, {remark}"
    remark += f" (others: {listed(found.others)})" if found.others else ""
    if not found.rows:
        raise CorpusError(f"{source.name} has no rows: {remark}")
    cells = [record[1] for record in found.rows[:HEADER_ROWS]]
    width = max(map(len, cells))
    # Rows above the table, such as a heading, have a single cell.
    wide = (n for n, row in enumerate(cells) if width == 1 or len(row) - row.count(None) > 1)
    if above := next(wide, len(cells) - 1):
        remark += f"; {quantity(above, 'row')} with a single cell above it skipped"
    texts = [[*map(_as_text, row), *[""] * (width - len(row))] for row in cells[above:]]
    columns, header = name_columns(texts, reading)
    remark += "" if header else "; no header"
    remark += f"; {quantity(found.hidden, 'hidden row')} read, too" if found.hidden else ""
    rows = _rows(found.rows[above + header :], columns, name)
    return Table(source.name, columns, rows, remark=remark, left_out=found.left_out)


def _read_sheet(path: Path, name: str | None) -> _Sheet:
    """The sheet with this name; one without a name if there is none.

    Raises:
        CorpusError: the workbook is damaged.
    """
    import openpyxl

    left_out = LeftOut()
    with (
        parsing(CorpusFormat.XLSX),
        warnings.catch_warnings(action="ignore"),
        ZipFile(path) as archive,
        path.open("rb") as file,
    ):
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if name is None:
            visible = [title for title in sheets if sheets[title].sheet_state == "visible"]
            name = next(iter([*visible, *sheets]), "")
        if name not in sheets:
            return _Sheet("", list(sheets), [], 0, left_out)
        sheet = sheets[name]
        with archive.open(sheet._worksheet_path) as part:
            merged, hidden = _features(part, left_out)
        left_out.add("chart", count=sum("/charts/chart" in one for one in archive.namelist()))
        sheet.reset_dimensions()  # the declared size need not be true
        values = [[_value(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
    for left, top, right, bottom in merged:
        rows = values[top - 1 : bottom]
        first = rows[0][left - 1] if rows and len(rows[0]) >= left else None
        for row in rows:
            row += [None] * (right - len(row))
            row[left - 1 : right] = [first] * (right - left + 1)
    records = []
    for number, cells in enumerate(values, 1):
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            records.append((number, cells))
    others = [title for title in sheets if title != name]
    return _Sheet(name, others, records, hidden, left_out)


def _features(part: IO[bytes], left_out: LeftOut) -> tuple[list[tuple[int, int, int, int]], int]:
    """The bounds of merged cells of a sheet, and how many rows are hidden; adds to `left_out`."""
    from lxml import etree
    from openpyxl.utils import range_boundaries

    merged, hidden = [], 0
    tags = [f"{_MAIN}{name}" for name in ("c", "row", "mergeCell")]
    for _, element in etree.iterparse(part, tag=tags):
        if element.tag.endswith("}c"):
            if element.find(f"{_MAIN}f") is not None and not element.findtext(f"{_MAIN}v"):
                left_out.add(_NO_VALUE)
            continue
        if element.tag.endswith("mergeCell"):
            merged.append(range_boundaries(element.get("ref")))
        else:
            hidden += element.get("hidden") in ("1", "true")
        element.clear()
    return merged, hidden


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
