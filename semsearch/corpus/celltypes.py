"""The types of CSV columns: numbers, booleans, lists or text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from semsearch.texts import printed_list

if TYPE_CHECKING:
    from semsearch.corpus.table import CellType

# A leading zero or plus indicates a code (zip, phone), and more digits than these do not fit
# 64 bits or a float: such cells stay text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Two digits of exponent keep it finite.
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
# Not enough to make a column numeric: "nan" is a word, too.
_NOT_FINITE = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)


def cell_type(cells: Iterable[str]) -> CellType | None:
    """The type that all non-empty cells of a column have; None for text."""
    typed = [cell for cell in map(str.strip, cells) if cell and not _NOT_FINITE.fullmatch(cell)]
    if not typed:
        return None
    for convert in (_integer, _number, _boolean, _list):
        if not any(isinstance(convert(cell), str) for cell in typed):
            return convert
    return None


def _integer(cell: str) -> Any:
    text = cell.strip()
    return int(text) if _INTEGER.fullmatch(text) else _null_if_nan(cell)


def _number(cell: str) -> Any:
    text = cell.strip()
    return float(text) if _NUMBER.fullmatch(text) else _null_if_nan(cell)


def _boolean(cell: str) -> Any:
    match cell.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            return _null_if_nan(cell)


def _list(cell: str) -> Any:
    text = cell.strip()
    if not text.startswith("["):
        return _null_if_nan(cell)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        items = printed_list(text)
        return cell if items is None else items


def _null_if_nan(cell: str) -> str | None:
    return None if cell.strip().lower() == "nan" else cell
