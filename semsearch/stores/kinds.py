"""The kinds of values that metadata fields hold."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from semsearch.filters import Value


class Kind(Enum):
    """The kinds of values: JSON's types, and dates among the texts."""

    TEXT = "text"
    DATE = "date"  #: a text such as 2019-05-01 or 2019-05-01T10:00
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    LIST = "list"  #: an empty one, or one in a list
    NULL = "null"


class Field(NamedTuple):
    """A metadata field."""

    name: str
    kinds: dict[str, int]  #: documents by kind, such as ``number`` or ``list of text``
    example: Value | None = None  #: a value, or an element of a list, of the most frequent kind
