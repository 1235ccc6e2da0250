"""Reading rows: the present version of each document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from semsearch.stores.milvus.catalogue import Content
from semsearch.stores.milvus.collections import (
    STEP,
    both,
    documents_of,
    listed,
    passages_of,
    vectors_of,
)
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.protocol import Space

#: What each row of a document is read with.
VERSIONS = ("document", "version", "text_version", "passages")
#: The fewest numbers that are read at once.
MIN_STEP = 64
#: About how many bytes are read at once; by default, servers refuse answers above 100 MB.
READ_BYTES = 16 << 20
#: About how many bytes of a passage are read, besides its vector.
PASSAGE_BYTES = 2000


def rows_at_once(space: Space | None = None) -> int:
    """How many passages are read at once, or vectors of a space."""
    size = PASSAGE_BYTES if space is None else max(4 * space.dimension, PASSAGE_BYTES)
    return max(READ_BYTES // size, MIN_STEP)


class Reader:
    """Reads the collections of an index.

    Args:
        connection: to Milvus.
        content: as it was read before anything else.
    """

    def __init__(self, connection: Connection, content: Content) -> None:
        self._connection = connection
        self._content = content

    def listed(
        self,
        collection: str,
        field: str,
        values: Sequence[int] | Sequence[str],
        fields: Sequence[str],
        condition: str = "",
    ) -> Iterator[Row]:
        """The rows of which a field has one of these values."""
        for one_of in listed(field, values):
            yield from self._connection.query(
                collection,
                both(one_of, condition),
                _distinct(field, *fields),
                self._content.written,
            )

    def in_order(
        self,
        collection: str,
        key: str,
        fields: Sequence[str],
        last: int = 0,
        step: int = STEP,
        condition: str = "",
        max_step: int = STEP,
    ) -> Iterator[list[Row]]:
        """The rows above a number, in the order of a key, some at a time: pages without gaps."""
        end = self._content.document if key == "document" else self._content.row
        step = min(max(step, MIN_STEP), max_step)
        while last < end:
            page = f"{key} > {last} and {key} <= {last + step}"
            rows = self._connection.query(
                collection, both(page, condition), _distinct(key, *fields), self._content.written
            )
            last += step
            if rows:
                yield sorted(rows, key=lambda row: int(row[key]))
            step = max_step if len(rows) < step // 8 else step

    def documents(
        self,
        fields: Sequence[str],
        last: int = 0,
        step: int = STEP,
        condition: str = "",
    ) -> Iterator[list[Row]]:
        """The rows of documents above a number, in the order of their coming, some at a time."""
        collection = documents_of(self._connection)
        return self.in_order(collection, "document", fields, last, step, condition)

    def owners(self, numbers: Iterable[int], fields: Sequence[str] = ()) -> dict[int, Row]:
        """The rows of documents by their numbers."""
        collection, columns = documents_of(self._connection), [*fields, *VERSIONS]
        rows = self.listed(collection, "document", sorted(set(numbers)), columns)
        return {row["document"]: row for row in rows}

    def chunks(self, chunk_ids: Sequence[int], fields: Sequence[str]) -> list[Row]:
        """The rows of passages by their ids."""
        return list(self.listed(passages_of(self._connection), "chunk", chunk_ids, fields))

    def chunk_owners(self, chunk_ids: Sequence[int]) -> dict[int, Row]:
        """The rows of the documents of chunks, with their terms, by the chunks' ids."""
        rows = self.chunks(chunk_ids, ["document"])
        owners = self.owners((row["document"] for row in rows), ["fields"])
        return {row["chunk"]: owners[row["document"]] for row in rows}

    def live_passages(self, owners: Sequence[Row], fields: Sequence[str]) -> list[Row]:
        """The passages of documents, whose rows are given, in their order."""
        collection = passages_of(self._connection)
        return self._live(collection, owners, "text_version", fields, rows_at_once())

    def live_vectors(self, space: Space, owners: Sequence[Row], fields: Sequence[str]) -> list[Row]:
        """The vectors' rows of documents, whose rows are given, in the order of passages."""
        collection = vectors_of(self._connection, space)
        return self._live(collection, owners, "version", ["row", *fields], rows_at_once(space))

    def _live(
        self,
        collection: str,
        owners: Sequence[Row],
        version: str,
        fields: Sequence[str],
        at_once: int,
    ) -> list[Row]:
        versions = {row["document"]: row[version] for row in owners}
        columns = ["document", "chunk", "version", *fields]
        live: list[Row] = []
        for documents in _parts([row for row in owners if row["passages"] <= at_once], at_once):
            rows = self.listed(collection, "document", sorted(documents), columns)
            live += [row for row in rows if row["version"] == versions[row["document"]]]
        for owner in owners:
            if owner["passages"] > at_once:
                condition = f"document == {owner['document']} and version == {owner[version]}"
                live += self._in_parts(collection, condition, columns, at_once)
        return sorted(live, key=lambda row: int(row["chunk"]))

    def _in_parts(
        self, collection: str, condition: str, columns: Sequence[str], at_once: int
    ) -> Iterator[Row]:
        """The rows of one document, by their chunks' ids, which are read first."""
        keys = self._connection.query(collection, condition, ["chunk"], self._content.written)
        chunks = sorted(row["chunk"] for row in keys)
        for start in range(0, len(chunks), at_once):
            some = chunks[start : start + at_once]
            yield from self.listed(collection, "chunk", some, columns, condition)


def _parts(owners: Sequence[Row], passages: int) -> Iterator[set[int]]:
    """The numbers of documents, in parts that have about as many passages in all."""
    part: set[int] = set()
    count = 0
    for row in owners:
        if part and count + row["passages"] > passages:
            yield part
            part, count = set(), 0
        part.add(row["document"])
        count += row["passages"]
    if part:
        yield part


def _distinct(*names: str) -> list[str]:
    return list(dict.fromkeys(names))
