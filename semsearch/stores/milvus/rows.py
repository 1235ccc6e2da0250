"""Reading rows of the collections, some at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from semsearch.filters import Condition
from semsearch.stores.milvus.conditions import to_expression
from semsearch.stores.milvus.connection import Connection, Row, all_of, one_of
from semsearch.stores.milvus.schema import passages_of, read_settings, vectors_of
from semsearch.stores.protocol import Space

#: How many ids a condition lists; answers above 100 MB are refused by servers.
IDS_AT_ONCE = 1000
#: How many numbers a page spans.
PAGE = 4096


class Rows:
    """Reads what is written by now, and perhaps what is written later.

    Args:
        connection: to Milvus.

    Raises:
        IndexNotFoundError: there is no such index.
        IndexFormatError: the collection is something else, or has another format.
    """

    def __init__(self, connection: Connection) -> None:
        # The first request waits until this time has passed on the server, at most 0.2 s. With
        # the consistency level "Strong" of the client, each would.
        now = connection.now()
        self.reading: Mapping[str, Any] = (
            {"consistency_level": "Customized", "guarantee_timestamp": now}
            if now
            else {"consistency_level": "Strong"}
        )
        self.connection = connection
        self.settings = read_settings(connection, self.reading)
        self.documents = connection.target.name
        self.passages = passages_of(connection.target.name)

    def vectors(self, space: Space) -> str:
        """The collection of a space's vectors."""
        return vectors_of(self.documents, space)

    def query(self, collection: str, condition: str, fields: Sequence[str]) -> list[Row]:
        """The rows that match a condition, in any order."""
        found = self.connection.call(
            "query", collection, filter=condition, output_fields=list(fields), **self.reading
        )
        return [dict(row) for row in found]

    def count(self, collection: str, condition: str) -> int:
        """How many rows match a condition."""
        [row] = self.query(collection, condition, ["count(*)"])
        return int(row["count(*)"])

    def listed(
        self,
        collection: str,
        field: str,
        values: Iterable[int] | Iterable[str],
        fields: Sequence[str],
        condition: str = "",
    ) -> Iterator[Row]:
        """The rows of which a field has one of these values."""
        wanted: list[Any] = sorted(set(values))
        for start in range(0, len(wanted), IDS_AT_ONCE):
            listed = one_of(field, wanted[start : start + IDS_AT_ONCE])
            yield from self.query(collection, all_of(listed, condition), fields)

    def document_pages(
        self, fields: Sequence[str], condition: str = "", after: int = 0
    ) -> Iterator[list[Row]]:
        """The documents above a number, in the order of addition."""
        last = self.settings.last_document
        return self._pages(self.documents, "document", last, fields, condition, after)

    def passage_pages(
        self, collection: str, fields: Sequence[str], condition: str = "", after: int = 0
    ) -> Iterator[list[Row]]:
        """The passages, or their vectors, above an id, in order."""
        last = self.settings.last_passage
        return self._pages(collection, "passage", last, fields, condition, after)

    def _pages(
        self,
        collection: str,
        key: str,
        last: int,
        fields: Sequence[str],
        condition: str,
        after: int,
    ) -> Iterator[list[Row]]:
        for start in range(after, last, PAGE):
            page = f"{key} > {start} and {key} <= {start + PAGE}"
            rows = self.query(collection, all_of(page, condition), [key, *fields])
            if rows:
                yield sorted(rows, key=lambda row: int(row[key]))

    def named(self, ids: Sequence[str], fields: Sequence[str], condition: str = "") -> list[Row]:
        """The documents with these ids, in the order of addition."""
        columns = ["document", "id", *fields]
        rows = self.listed(self.documents, "id", ids, columns, all_of("document > 0", condition))
        return sorted(rows, key=lambda row: int(row["document"]))

    def owners(self, numbers: Iterable[int], fields: Sequence[str]) -> dict[int, Row]:
        """Documents by their numbers."""
        rows = self.listed(self.documents, "document", numbers, ["document", *fields])
        return {row["document"]: row for row in rows}

    def expression(self, condition: Condition | None) -> str:
        """A condition as an expression of Milvus; empty for none."""
        return "" if condition is None else to_expression(condition, self._matching_texts)

    def _matching_texts(self, field: str, pattern: re.Pattern[str]) -> list[str]:
        """The distinct texts of a field that match a pattern, of all documents."""
        texts = (
            text
            for rows in self.document_pages(["fields"])
            for row in rows
            for text in row["fields"].get(field, {}).get("text", [])
        )
        return [text for text in dict.fromkeys(texts) if pattern.fullmatch(text)]


def passage_ids(document: Row) -> range:
    """The ids of the passages of a document."""
    return range(document["first"], document["first"] + document["passages"])
