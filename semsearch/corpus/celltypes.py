"""The types of CSV columns: numbers, dates, booleans, lists or text; how people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from semsearch.corpus.texts import printed_list

#: A column has a type if this share of its first cells has, or all of some but one.
MOST, SOME = 0.95, 5

# A leading zero or plus indicates a code (zip, phone), and more digits than these do not fit
# 64 bits or a float: columns with such cells stay text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Two digits of exponent keep it finite.
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_DIGITS = re.compile(r"[+-]?[0-9]+")
#: A number as people write it: ``-1.234,56 €``, ``$3.50``, ``1'250``, ``12 %``.
_UNIT = r"(?:[$€£¥%]|CHF|EUR|USD|GBP)"
_BLANKS = " \u00a0\u202f"
_GROUPED = rf"[1-9][0-9]{{0,2}}(?:(?P<mark>[.,'’{_BLANKS}])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*)"
_WRITTEN = re.compile(
    rf"(?P<minus>-?{_UNIT}?\s?-?)(?P<number>(?:0|{_GROUPED}|[1-9][0-9]*)(?:[.,][0-9]+)?)\s?{_UNIT}?"
)
_DATE = re.compile(
    r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})(?:[ T,]+([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2})?))?"
)
#: How pandas, R, databases and spreadsheets write that a value is missing.
_MISSING = {"nan", "na", "n/a", "null", "none", "\\n", "<na>", "#n/a"}
_BOOLEANS = {"true": True, "false": False}

#: The sign before decimals; the order of day and month.
DECIMALS, DATES = (",", "."), ("day-first", "month-first")


class CellType(NamedTuple):
    """The type of a column.

    Args:
        name: in messages: ``number``.
        parse: returns the value of a cell without spaces around it, None if it does not fit;
            cells of columns without it stay as they are.
        note: said about the column, if its cells could be read in several ways.
    """

    name: str
    parse: Callable[[str], Any] | None
    note: str = ""

    def convert(self, cell: str) -> Any:
        """The value of a cell; None for a missing one, and for one that does not fit."""
        return cell if self.parse is None else self.parse(cell.strip())


def column_types(
    columns: Iterable[str],
    rows: Sequence[Mapping[str, str]],
    decimal: str | None,
    dates: str | None,
) -> dict[str, CellType]:
    """The types of the columns that have one or a note, by the first rows of a table.

    Args:
        columns: their names.
        rows: the cells of rows.
        decimal: the sign before the decimals, one of `DECIMALS`; None to tell it from the cells.
        dates: the order of day and month, one of `DATES`; None to tell it from the cells.
    """
    found = {}
    for column in columns:
        cells = _filled(row.get(column, "") for row in rows)
        has_points = decimal == "," and any("." in cell for cell in cells)
        plain = None if has_points else column_type(cells)
        if kind := plain or _written_type(cells, decimal, dates):
            found[column] = kind
    return found


def column_type(cells: Iterable[str]) -> CellType | None:
    """The type that most of the first cells of a column have; None for text."""
    filled = _filled(cells)
    if not filled:
        return None
    numbers = [cell for cell in filled if _INTEGER.fullmatch(cell) or _NUMBER.fullmatch(cell)]
    if _are_most(numbers, filled):
        if any(map(_DIGITS.fullmatch, set(filled) - set(numbers))):  # codes
            return None
        if all(map(_INTEGER.fullmatch, numbers)):
            return _INTEGERS
        return _NUMBERS if all(map(_NUMBER.fullmatch, numbers)) else None
    for kind in (_TRUTHS, _LISTS):
        if _are_most([cell for cell in filled if kind.convert(cell) is not None], filled):
            return kind
    return None


def _filled(cells: Iterable[str]) -> list[str]:
    return [cell for cell in map(str.strip, cells) if cell and not is_missing(cell)]


def _are_most(fitting: Sequence[object], cells: Sequence[str]) -> bool:
    others = len(cells) - len(fitting)
    return len(fitting) >= MOST * len(cells) > 0 or (others == 1 and len(fitting) >= SOME)


def _written_type(cells: Sequence[str], decimal: str | None, order: str | None) -> CellType | None:
    """The type of a column of numbers or dates in one of several notations."""
    dates = [found for cell in cells if (found := _DATE.fullmatch(cell))]
    if _are_most(dates, cells):
        return _date_type(dates, order)
    written = [found for cell in cells if (found := _WRITTEN.fullmatch(cell))]
    if not _are_most(written, cells):
        return None
    numbers = [found["number"] for found in written]
    by_blanks = all(found["mark"] and found["mark"] in _BLANKS for found in written)
    if by_blanks and len({sum(map(str.isdigit, number)) for number in numbers}) == 1:
        return None  # telephone numbers
    decimals = {sign for number in numbers if (sign := _decimal_sign(number))}
    if decimal:
        decimals = {decimal}
    elif not decimals and any("," in number or "." in number for number in numbers):
        advice = "text; numbers with thousands? add --decimal . or --decimal ,"
        return CellType("text", None, advice)
    if len(decimals) > 1:
        return None
    name = {"": "numbers", ",": "numbers with decimal comma", ".": "numbers with decimal point"}
    sign = "".join(decimals)
    return CellType("number", partial(_written_number, decimal=sign or "."), name[sign])


def _decimal_sign(number: str) -> str | None:
    """The sign before the decimals of a number, as far as this one tells."""
    signs = [sign for sign in number if sign in ",."]
    if not signs:
        return None
    *others, last = signs
    if last in others:  # it separates thousands
        return "." if last == "," else ","
    whole, _, decimals = number.rpartition(last)
    is_clear = others or len(decimals) != 3 or whole == "0" or len(whole) > 3
    return last if is_clear else None


def _written_number(cell: str, decimal: str) -> float | None:
    found = _WRITTEN.fullmatch(cell)
    if not found:
        return None
    whole, _, decimals = found["number"].partition(decimal)
    digits = "".join(filter(str.isdigit, whole))
    sign = "-" if "-" in found["minus"] else ""
    return float(f"{sign}{digits}.{decimals}") if decimals else int(sign + digits)


def _date_type(dates: Sequence[re.Match[str]], order: str | None) -> CellType:
    """The type of dates in figures; those with dots begin with the day."""
    first, second = (max(int(found[place]) for found in dates) for place in (1, 3))
    if order is None and (dates[0][2] == "." or first > 12):
        order = DATES[0]
    elif order is None and second > 12:
        order = DATES[1]
    if order is None:
        return CellType("text", None, f"text; dates? add --dates {' or --dates '.join(DATES)}")
    return CellType("date", partial(_date, order=order), f"dates, {order.replace('-', ' ')}")


def _date(cell: str, order: str) -> str | None:
    found = _DATE.fullmatch(cell)
    if not found:
        return None
    day, month = (found[1], found[3]) if order == DATES[0] else (found[3], found[1])
    time = f"T{found[5]:0>2}{found[6]}" if found[5] else ""
    try:
        datetime.fromisoformat(read := f"{found[4]}-{month:0>2}-{day:0>2}{time}")
    except ValueError:
        return None
    return read


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is missing."""
    return cell.strip().lower() in _MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number, in any notation."""
    return bool(_NUMBER.fullmatch(cell.strip()) or _WRITTEN.fullmatch(cell.strip()))


def _integer(cell: str) -> float | None:
    return int(cell) if _INTEGER.fullmatch(cell) else _number(cell)


def _number(cell: str) -> float | None:
    return float(cell) if _NUMBER.fullmatch(cell) else None


def _list(cell: str) -> list[Any] | None:
    if not cell.startswith("["):
        return None
    try:
        return list(json.loads(cell))
    except (ValueError, RecursionError):
        return printed_list(cell)


_INTEGERS, _NUMBERS = CellType("number", _integer), CellType("number", _number)
_TRUTHS = CellType("boolean", lambda cell: _BOOLEANS.get(cell.lower()))
_LISTS = CellType("list", _list)
