"""The types of CSV columns: numbers, booleans, lists or text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from semsearch.corpus.texts import printed_list

#: A column has a type if this share of its first cells has.
MOST = 0.95

# A leading zero or plus indicates a code (zip, phone), and more digits than these do not fit
# 64 bits or a float: columns with such cells stay text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Two digits of exponent keep it finite.
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_DIGITS = re.compile(r"[+-]?[0-9]+")
#: How pandas, R, databases and spreadsheets write that a value is missing.
_MISSING = {"nan", "na", "n/a", "null", "none", "\\n", "<na>", "#n/a"}
_BOOLEANS = {"true": True, "false": False}


class CellType(NamedTuple):
    """The type of a column.

    Args:
        name: in messages: ``number``.
        parse: returns the value of a cell without spaces around it; a string does not fit.
    """

    name: str
    parse: Callable[[str], Any]

    def convert(self, cell: str) -> Any:
        """The value of a cell, None for a missing one; a string does not fit."""
        value = self.parse(cell.strip())
        return None if isinstance(value, str) and is_missing(cell) else value


def column_type(cells: Iterable[str]) -> CellType | None:
    """The type that most of the first cells of a column have; None for text."""
    filled = [cell for cell in map(str.strip, cells) if cell and not is_missing(cell)]
    if not filled:
        return None
    least = MOST * len(filled)
    numbers = [cell for cell in filled if _INTEGER.fullmatch(cell) or _NUMBER.fullmatch(cell)]
    if len(numbers) >= least:
        if any(map(_DIGITS.fullmatch, set(filled) - set(numbers))):  # codes
            return None
        if all(map(_INTEGER.fullmatch, numbers)):
            return _INTEGERS
        return _NUMBERS if all(map(_NUMBER.fullmatch, numbers)) else None
    for kind in (_TRUTHS, _LISTS):
        if sum(not isinstance(kind.parse(cell), str) for cell in filled) >= least:
            return kind
    return None


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is missing."""
    return cell.strip().lower() in _MISSING


def _integer(cell: str) -> int | float | str:
    return int(cell) if _INTEGER.fullmatch(cell) else _number(cell)


def _number(cell: str) -> float | str:
    return float(cell) if _NUMBER.fullmatch(cell) else cell


def _boolean(cell: str) -> bool | str:
    return _BOOLEANS.get(cell.lower(), cell)


def _list(cell: str) -> list[Any] | str:
    if not cell.startswith("["):
        return cell
    try:
        return list(json.loads(cell))
    except (ValueError, RecursionError):
        items = printed_list(cell)
        return cell if items is None else items


_INTEGERS, _NUMBERS = CellType("number", _integer), CellType("number", _number)
_TRUTHS, _LISTS = CellType("boolean", _boolean), CellType("list", _list)
