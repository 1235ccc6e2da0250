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
# Codes lack these: 1E5.
_SIGNS_OF_NUMBERS = re.compile(r"\.[0-9]|[eE][+-]")
# Not enough to make a column numeric: they are words, too.
_NOT_FINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
#: How pandas, R, databases and spreadsheets write that a value is missing.
_MISSING = {"nan", "na", "n/a", "null", "none", "\\n", "<na>", "#n/a"}

_PROSE_WORDS = 4
_SENTENCE_END = re.compile(r"\w[.!?]['\")\]]?$|[。！？।؟۔]$")
# Scripts without spaces between words: Thai, Lao, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_PROSE_UNSPACED = 8


def cell_type(cells: Iterable[str]) -> CellType | None:
    """The type that all non-empty cells of a column have; None for text.

    In a column whose first cells are empty, each cell has its own: a number, or text, such as
    ``1E5``, which may be a code, and ``NA``.
    """
    filled = list(filter(None, map(str.strip, cells)))
    if not filled:
        return _plain_number
    typed = [cell for cell in filled if not (is_missing(cell) or _NOT_FINITE.fullmatch(cell))]
    if not typed:
        return None
    for convert, others in _TYPES:
        if not any(isinstance(convert(cell), others) for cell in typed):
            return convert
    return None


def _plain_number(cell: str) -> Any:
    text = cell.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and _SIGNS_OF_NUMBERS.search(text):
        return float(text)
    return cell


def _integer(cell: str) -> Any:
    text = cell.strip()
    return int(text) if _INTEGER.fullmatch(text) else _number(cell)


def _number(cell: str) -> Any:
    text = cell.strip()
    return float(text) if _NUMBER.fullmatch(text) else _null_if_missing(cell)


def _boolean(cell: str) -> Any:
    values = {"true": True, "false": False}
    return values.get(cell.strip().lower(), _null_if_missing(cell))


def _list(cell: str) -> Any:
    text = cell.strip()
    if not text.startswith("["):
        return _null_if_missing(cell)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        items = printed_list(text)
        return cell if items is None else items


def _null_if_missing(cell: str) -> str | None:
    return None if is_missing(cell) else cell


def is_prose(cell: str) -> bool:
    """Whether a cell has several words, or ends like a sentence."""
    words = cell.count(" ") + 1
    return (
        words >= _PROSE_WORDS
        or (words > 1 and _SENTENCE_END.search(cell) is not None)
        or len(_UNSPACED.findall(cell)) >= _PROSE_UNSPACED
    )


def is_missing(cell: str) -> bool:
    """Whether a cell of numbers says that its value is missing."""
    return cell.strip().lower() in _MISSING


#: In order of preference, with what they return for cells of other types.
_TYPES: tuple[tuple[CellType, tuple[type, ...]], ...] = (
    (_integer, (float, str)),
    (_number, (str,)),
    (_boolean, (str,)),
    (_list, (str,)),
)
