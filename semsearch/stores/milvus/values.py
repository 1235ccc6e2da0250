"""The values of metadata fields, of a sample of the documents or of all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from semsearch.filters import Value
from semsearch.records import Kind, metadata_name
from semsearch.stores.milvus.connection import Row
from semsearch.stores.milvus.kinds import elements, kind_of
from semsearch.stores.milvus.reader import Reader
from semsearch.stores.milvus.terms import NOT_NULL, field_key

#: In how many documents examples are looked for, and in how many at first.
SAMPLE_DOCUMENTS, FIRST_DOCUMENTS = 10_000, 256

_FIELDS = ["id", "title", "metadata"]


class FieldValues:
    """Reads the values of fields; of lists, their elements.

    Args:
        reader: of the index.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def matching(self, field: str, pattern: re.Pattern[str]) -> list[str]:
        """The different texts of a field that match a pattern, of all documents."""
        values = (
            value
            for rows in self._reader.documents(_FIELDS, condition=_has(field))
            for value in _values(rows, field)
        )
        texts = (value for value in values if isinstance(value, str))
        return list(dict.fromkeys(text for text in texts if pattern.fullmatch(text)))

    def example(self, field: str, kind: Kind) -> Value | None:
        """A value of one kind, which is neither an object nor a list."""
        if kind in (Kind.OBJECT, Kind.LIST, Kind.NULL):
            return None
        return next((value for value in self._sample(field) if kind_of(value) is kind), None)

    def _sample(self, field: str) -> Iterator[Any]:
        left = SAMPLE_DOCUMENTS
        for rows in self._reader.documents(_FIELDS, step=FIRST_DOCUMENTS, condition=_has(field)):
            yield from _values(rows[:left], field)
            left -= len(rows)
            if left <= 0:
                return


def _has(field: str) -> str:
    """A condition that a field is not null."""
    return f'json_contains_any(fields["{field_key(field)}"], ["{NOT_NULL}"])'


def _values(rows: Iterable[Row], field: str) -> Iterator[Any]:
    for row in rows:
        if field == "id":
            yield row["id"]
        elif field == "title":
            yield json.loads(row["title"])
        else:
            yield from elements(json.loads(row["metadata"]).get(metadata_name(field)))
