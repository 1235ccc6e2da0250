"""What the cells of a CSV column stand for: numbers, truth values, lists or just text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsearch.corpus.table import CellType

__all__ = ["cell_type"]

# A leading zero or plus is the mark of a code (zip, phone), and digits beyond these would be lost
# in 64 bits or in a float: such cells are names, not numbers.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# Two digits of exponent keep it finite.
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
# They say nothing of a column by themselves: "nan" is a word, too.
_NOT_FINITE = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)

# A flat list as Python prints it and pandas writes it: ['it', "it's", 1.5, None]. The escapes are
# those that repr() uses, for Python's parser warns of others on standard error; of the characters
# that it refuses, repr() writes none.
_NO_SOURCE = r"\\\n\r\0\ud800-\udfff"
_ESCAPE = r"\\(?:[\\'nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})"
_LITERAL = (
    rf"(?:'(?:[^'{_NO_SOURCE}]|{_ESCAPE})*+'|\"(?:[^\"{_NO_SOURCE}]|{_ESCAPE})*+\""
    r"|-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?|True|False|None)"
)
_PYTHON_LIST = re.compile(rf"\[{_LITERAL}(?:, {_LITERAL})*+\]")
_PYTHON_LIST_MAX_CHARACTERS = 10_000


def cell_type(cells: Iterable[str]) -> CellType | None:
    """The type that all cells of a column have, empty ones aside; None for text."""
    told = [cell for cell in map(str.strip, cells) if cell and not _NOT_FINITE.fullmatch(cell)]
    if not told:
        return None
    for convert in (_integer, _number, _truth, _list):
        if not any(isinstance(convert(cell), str) for cell in told):
            return convert
    return None


def _integer(cell: str) -> Any:
    text = cell.strip()
    return int(text) if _INTEGER.fullmatch(text) else _null_if_nan(cell)


def _number(cell: str) -> Any:
    text = cell.strip()
    return float(text) if _NUMBER.fullmatch(text) else _null_if_nan(cell)


def _truth(cell: str) -> Any:
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
        if len(text) > _PYTHON_LIST_MAX_CHARACTERS or not _PYTHON_LIST.fullmatch(text):
            return cell
        return ast.literal_eval(text)


def _null_if_nan(cell: str) -> str | None:
    return None if cell.strip().lower() == "nan" else cell
