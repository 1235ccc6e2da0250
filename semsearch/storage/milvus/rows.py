"""Reading rows of the collections, some at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from semsearch.errors import IndexBusyError
from semsearch.filters import Condition
from semsearch.storage.milvus.conditions import all_of, one_of, to_expression
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.milvus.schema import READING, SETTINGS_ID, IndexRecord, read_record

#: How many ids a condition lists; servers refuse answers above 100 MB.
IDS_AT_ONCE = 1000
#: How many numbers a page spans.
PAGE = 4096


class Rows:
    """Reads what this process has written, and what others had written 0.2 seconds ago.

    Args:
        connection: to Milvus.
        record: of the index, if they are known.

    Raises:
        IndexNotFoundError: the creation of the index was interrupted.
    """

    def __init__(self, connection: Connection, record: IndexRecord | None = None) -> None:
        self.connection = connection
        self.target = connection.target
        self.record = record or read_record(connection)

    def collections(self) -> list[str]:
        """The collections of the index."""
        vectors = map(self.target.vectors, self.record.spaces)
        return [self.target.name, self.target.passages, *vectors]

    def query(self, collection: str, condition: str, fields: Iterable[str]) -> list[Row]:
        """The rows that match a condition, in any order."""
        found = self.connection.call(
            "query", collection, filter=condition, output_fields=list(fields), **READING
        )
        return [dict(row) for row in found]

    def size(self, collection: str) -> int:
        """The number of documents, passages or vectors."""
        [row] = self.query(collection, "", ["count(*)"])
        return int(row["count(*)"]) - (collection == self.target.name)  # without the record

    def listed(
        self,
        collection: str,
        key: str,
        values: Iterable[Any],
        fields: Iterable[str],
        rest: str = "",
    ) -> Iterator[Row]:
        """The rows with one of these values in a field, which match the `rest` of a condition."""
        wanted = sorted(set(values))
        for start in range(0, len(wanted), IDS_AT_ONCE):
            condition = all_of(one_of(key, wanted[start : start + IDS_AT_ONCE]), rest)
            yield from self.query(collection, condition, {key, *fields})

    def passages_by_id(
        self, collection: str, ids: Sequence[int], fields: Iterable[str]
    ) -> dict[int, Row]:
        """Passages, or their vectors, by id.

        Raises:
            IndexBusyError: some are missing.
        """
        rows = {row["passage"]: row for row in self.listed(collection, "passage", ids, fields)}
        if not rows.keys() >= set(ids):
            raise IndexBusyError(
                f"{self.target.address} was written while it was read, or a command was killed; "
                "index the documents again, or see: semsearch verify --repair"
            )
        return rows

    def pages(
        self, collection: str, fields: Iterable[str], rest: str = "", after: int = 0
    ) -> Iterator[list[Row]]:
        """Documents, passages or vectors in order of their numbers, above a number."""
        is_document = collection == self.target.name
        key = "document" if is_document else "passage"
        last = self.record.last_document if is_document else self.record.last_passage
        for start in range(after, last, PAGE):
            page = f"{key} > {start} and {key} <= {start + PAGE}"
            if rows := self.query(collection, all_of(page, rest), {key, *fields}):
                yield sorted(rows, key=lambda row: int(row[key]))

    def named(self, ids: Iterable[str], fields: Iterable[str], rest: str = "") -> list[Row]:
        """The documents with these ids, in the order of addition."""
        wanted = {name for name in ids if name != SETTINGS_ID}
        rows = self.listed(self.target.name, "id", wanted, {"document", *fields}, rest)
        return sorted(rows, key=lambda row: int(row["document"]))

    def expression(self, condition: Condition | None) -> str:
        """A condition as an expression of Milvus; empty for none."""
        return "" if condition is None else to_expression(condition, self._matching_texts)

    def _matching_texts(self, field: str, pattern: re.Pattern[str]) -> list[str]:
        """The distinct texts of a field that match a pattern, of all documents."""
        texts = {
            text
            for rows in self.pages(self.target.name, ["fields"])
            for row in rows
            for kind in ("text", "written")
            for text in row["fields"].get(field, {}).get(kind, [])
        }
        return sorted(text for text in texts if pattern.fullmatch(text))


def passage_ids(documents: Iterable[Row]) -> list[int]:
    """The ids of the passages of documents."""
    return [
        passage
        for row in documents
        for passage in range(row["first"], row["first"] + row["passages"])
    ]
