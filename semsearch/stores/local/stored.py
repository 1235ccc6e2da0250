"""What is read back from the database: as it was written, or not at all.

SQLite keeps any type in any column, and damage, or somebody, can have put anything there. The
columns of the schema check what they read, so that what is built on them need not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Dialect, Float, Integer, LargeBinary, Text
from sqlalchemy.types import UserDefinedType

#: No id, count or size comes near it, and one more than any of them still fits into SQLite.
INTEGER_LIMIT = 2**62

T = TypeVar("T")
_Check: TypeAlias = Callable[[Any], Any]


class DamageError(sqlite3.DatabaseError):
    """A stored value is none that semsearch wrote. It leaves a store as an IndexFormatError."""


class StoredInteger(Integer):
    """A whole number that can be counted on from."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _integer


class StoredFloat(Float[float]):
    """A number."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _float


class StoredText(Text):
    """A text."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _text


class StoredTextOrNull(Text):
    """A text that may be missing."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _text_or_null


class StoredBytes(LargeBinary):
    """Bytes."""

    def result_processor(self, dialect: Dialect, coltype: object) -> _Check:
        """What each value that is read goes through."""
        return _bytes


class AnyValue(UserDefinedType[Any]):
    """A value of any of SQLite's types, which is kept as it is."""

    cache_ok = True

    def get_col_spec(self, **options: Any) -> str:
        """What the column is declared as: nothing is converted in it."""
        return "BLOB"


def stored_json(text: str, kind: type[T]) -> T:
    """The value of a stored JSON text.

    Raises:
        DamageError: it is none, or not of that kind, or holds what UTF-8 has no form for.
    """
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # an unpaired surrogate can be written in JSON, but not printed
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if type(value) is not kind:
        raise DamageError(f"{text[:40]!r} stands where JSON of type {kind.__name__} belongs")
    return value


def _integer(value: Any) -> Any:
    if type(value) is int and -INTEGER_LIMIT < value < INTEGER_LIMIT:
        return value
    raise _misplaced(value, "a whole number")


def _float(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise _misplaced(value, "a number")


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise _misplaced(value, "a text")


def _text_or_null(value: Any) -> Any:
    if value is None or type(value) is str:
        return value
    raise _misplaced(value, "a text")


def _bytes(value: Any) -> Any:
    if type(value) is bytes:
        return value
    raise _misplaced(value, "a vector")


def _misplaced(value: Any, wanted: str) -> DamageError:
    shown = repr(value[:40] if isinstance(value, (str, bytes)) else value)
    return DamageError(f"{shown} stands where {wanted} belongs")
