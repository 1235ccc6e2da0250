"""The values of metadata fields, of a sample of the documents or of all."""

from __future__ import annotations

import bisect
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from semsearch.filters import Value
from semsearch.records import metadata_name
from semsearch.stores.milvus.connection import Row
from semsearch.stores.milvus.kinds import elements, kind_of
from semsearch.stores.milvus.reader import Reader
from semsearch.stores.milvus.terms import NOT_NULL, field_key
from semsearch.stores.protocol import Kind

#: In how many documents examples and similar values are looked for, and in how many at first.
SAMPLE_DOCUMENTS, FIRST_DOCUMENTS = 10_000, 256
#: Documents, spread over the index, whose dates show the notations of a field.
SPREAD_DOCUMENTS = 500

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

    def example(self, field: str, kinds: Iterable[Kind]) -> Value | None:
        """A value of one of these kinds."""
        wanted = {Kind.TEXT, Kind.DATE, Kind.NUMBER, Kind.BOOLEAN}.intersection(kinds)
        values = self._sample(field) if wanted else []
        return next((value for value in values if kind_of(value) in wanted), None)

    def dates(self, field: str) -> list[str]:
        """The dates of the first documents, and of some spread over the index."""
        first = itertools.islice(self._sample(field), FIRST_DOCUMENTS)
        rows = self._reader.spread(SPREAD_DOCUMENTS, _FIELDS, _has(field))
        values = itertools.chain(first, _values(rows, field))
        return [value for value in values if kind_of(value) is Kind.DATE]

    def neighbours(self, field: str, value: Value) -> list[Value]:
        """The nearest values on either side of one of the same kind."""
        same = str if isinstance(value, str) else (int, float)
        ordered: list[Any] = sorted(
            {
                each
                for each in self._sample(field)
                if isinstance(each, same) and not isinstance(each, bool)
            }
        )
        place = bisect.bisect_left(ordered, value)
        behind = ordered[place : place + 1]
        return list(
            dict.fromkeys([*(behind if value in behind else ordered[:place][-1:]), *behind])
        )

    def texts(self, field: str, max_characters: int) -> list[str]:
        """Different texts of a length."""
        texts = (value for value in self._sample(field) if isinstance(value, str))
        return list(dict.fromkeys(text for text in texts if len(text) <= max_characters))

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
