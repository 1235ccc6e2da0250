"""Writing an index on Milvus, which has no transactions.

Documents are written in this order: the rows of new documents, as yet without passages; passages;
their vectors. Then the former passages of changed documents are deleted, and at last the documents
get their rows with the hash of their text. A killed command leaves documents whose hash is not that
of the corpus: the next command that reads them writes them again, and deletes all other passages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy

from semsearch.analysis import Language
from semsearch.errors import IndexClosedError, UnsupportedByStoreError
from semsearch.protocols import Encoder, Matrix
from semsearch.stores.milvus.conditions import KindCounts, changed_counts
from semsearch.stores.milvus.connection import Connection, Row, one_of
from semsearch.stores.milvus.documents import document_row, misfits, passage_rows
from semsearch.stores.milvus.reader import MilvusState
from semsearch.stores.milvus.rows import IDS_AT_ONCE, Rows, passage_ids
from semsearch.stores.milvus.schema import (
    NO_VECTOR,
    PASSAGE_COLUMNS,
    Settings,
    build_index,
    create_vectors,
    metric_of,
    rounded,
)
from semsearch.stores.milvus.verification import find_faults, find_remains
from semsearch.stores.protocol import (
    EVERYTHING,
    Fault,
    NewDocument,
    Selection,
    Space,
    TextVectors,
    described_space,
)
from semsearch.vector_indexes import FLAT, IndexType, chosen_kind

logger = logging.getLogger(__name__)

_STORED = ("metadata", "first", "passages", "ending")


class MilvusWriter:
    """The right to write; see `semsearch.stores.protocol.StoreWriter`.

    Args:
        connection: to Milvus.
        read: returns the current state.
    """

    def __init__(self, connection: Connection, read: Callable[[], MilvusState]) -> None:
        self._connection = connection
        self._read = read
        self._is_open = True

    @contextmanager
    def state(self) -> Iterator[MilvusState]:
        """The current state, which no other writer of this machine changes."""
        yield self._state()

    def close(self) -> None:
        """Release the right to write."""
        self._is_open = False

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or update those with the same ids."""
        rows = self._state().rows
        stored = {row["id"]: row for row in rows.named([each.id for each in documents], _STORED)}
        kept = {document.id for document in documents if document.passages is None}
        written, passages = _numbered(rows.settings, documents, stored)
        fields = changed_counts(rows.settings.fields, [row["metadata"] for row in written])
        settings = rows.settings._replace(
            last_document=max(rows.settings.last_document, *(row["document"] for row in written)),
            last_passage=rows.settings.last_passage + len(passages),
            fields=fields,
        )
        self._save(settings)
        unfinished = {"first": 0, "passages": 0, "text_hash": ""}
        new = [row | unfinished for row in written if row["id"] not in stored]
        self._connection.upsert(rows.documents, new)
        replaced = [row for name, row in stored.items() if name not in kept]
        former = _passages_of(rows, replaced)
        self._write_passages(rows, passages)
        for space in settings.spaces:
            texts = [vectors[space.id, row["text_hash"]] for row in passages]
            self._write_vectors(rows, space, passages, rounded(space, numpy.array(texts)))
        self._renew_fields(rows, [row for row in written if row["id"] in kept])
        self._delete_passages(rows, former)
        self._connection.upsert(rows.documents, written)
        removed = [row["metadata"] for row in stored.values()]
        self._save(settings._replace(fields=changed_counts(fields, [], removed)))

    def misfits(self, documents: Sequence[NewDocument]) -> dict[str, str]:
        """Why Milvus cannot hold documents, by their ids."""
        return misfits(documents)

    def remove(self, selection: Selection) -> int:
        """Remove documents with their passages and vectors; returns their number."""
        state = self._state()
        removed, fields = 0, state.settings.fields
        for documents in state.selected(selection, ["metadata"]):
            self._delete_passages(state.rows, _passages_of(state.rows, documents))
            self._delete(state.rows.documents, "id", [row["id"] for row in documents])
            fields = changed_counts(fields, [], [row["metadata"] for row in documents])
            removed += len(documents)
        self._save(state.settings._replace(fields=fields))
        return removed

    def note_sync(self, documents: int | None) -> None:
        """Record the number of documents before a sync; None when it has finished."""
        self._save(self._state().settings._replace(unfinished_sync=documents))

    def note_corpora(self, readings: Mapping[str, dict[str, Any]]) -> None:
        """Record how corpora are read."""
        settings = self._state().settings
        self._save(settings._replace(corpora={**settings.corpora, **readings}))

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """Add a space, which is incomplete."""
        state = self._state()
        spaces = state.spaces()
        space = described_space(encoder, dtype, spaces, complete=not state.count())
        create_vectors(self._connection, space)
        self._save(state.settings._replace(spaces=[*spaces, space]))
        return space

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""
        state = self._state()
        others = [other for other in state.spaces() if other.id != space.id]
        self._save(state.settings._replace(spaces=others))
        self._connection.call("drop_collection", state.rows.vectors(space))

    def put_vectors(self, space: Space, chunk_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the missing vectors of passages."""
        rows = self._state().rows
        columns = ["passage", "document", "fields"]
        listed = rows.listed(rows.passages, "passage", chunk_ids, columns)
        passages = {row["passage"]: row for row in listed}
        ordered = [passages[chunk_id] for chunk_id in chunk_ids]
        self._write_vectors(rows, space, ordered, rounded(space, vectors))

    def mark_complete(self, space: Space) -> None:
        """Make a space searchable, once each passage has a vector."""
        state = self._state()
        spaces = [
            other._replace(complete=other.complete or other.id == space.id)
            for other in state.spaces()
        ]
        self._save(state.settings._replace(spaces=spaces))

    def choose_index_type(self, wanted: IndexType) -> None:
        """Request a type of vector index, which `optimise` builds."""
        if wanted.recall != IndexType().recall:
            raise UnsupportedByStoreError("on Milvus, the recall cannot be chosen")
        self._save(self._state().settings._replace(index_type=wanted.kind))

    def index_field(self, name: str) -> NoReturn:
        """Refused: Milvus tests the fields of all documents."""
        raise UnsupportedByStoreError(
            "an index on Milvus has no indexes of fields; filters work without"
        )

    def set_language(self, language: Language) -> NoReturn:
        """Refused: Milvus splits texts into words."""
        raise UnsupportedByStoreError("on Milvus, BM25 has no languages")

    def optimise(self, *, thoroughly: bool = False) -> None:
        """Let Milvus build another kind of vector index if one is requested or due."""
        rows = self._state().rows
        wanted = IndexType(rows.settings.index_type)
        for space in rows.settings.spaces:
            collection = rows.vectors(space)
            count = rows.count(collection, "document > 0")
            is_flat = chosen_kind(wanted, count, space.dimension) == FLAT
            kind = "FLAT" if is_flat else "IVF_FLAT"
            present = self._connection.call("describe_index", collection, "vector")
            if present["index_type"] != kind:
                self._connection.call("release_collection", collection)
                self._connection.call("drop_index", collection, "vector")
                build_index(self._connection, collection, kind, metric_of(space))

    def compact(self) -> None:
        """Ask Milvus to rewrite its files without deleted rows, which it does in its own time."""
        rows = self._state().rows
        collections = map(rows.vectors, rows.settings.spaces)
        for collection in (rows.documents, rows.passages, *collections):
            self._connection.call("compact", collection)

    def verify(self) -> list[Fault]:
        """Check the store and return all faults."""
        return find_faults(self._state().rows)

    def repair(self) -> None:
        """Remove what belongs to no document, and documents that lack passages.

        The fields are counted again.
        """
        state = self._state()
        remains = find_remains(state.rows)
        if remains.documents:
            logger.warning(
                "documents that lack passages are removed: %s; index them again", remains.names()
            )
            self.remove(Selection([row["id"] for row in remains.documents]))
        self._delete_passages(state.rows, remains.passages)
        for space in state.spaces():
            self._delete(state.rows.vectors(space), "passage", remains.vectors[space.id])
        fields: KindCounts = {}
        for documents in self._state().selected(EVERYTHING, ["metadata"]):
            fields = changed_counts(fields, [row["metadata"] for row in documents])
        spaces = [space._replace(complete=False) for space in state.spaces()]
        self._save(state.settings._replace(fields=fields, spaces=spaces))

    def _state(self) -> MilvusState:
        if not self._is_open:
            raise IndexClosedError("the writer is closed: its `with` block has ended")
        return self._read()

    def _save(self, settings: Settings) -> None:
        self._connection.upsert(self._connection.target.name, [settings.row()])

    def _write_passages(self, rows: Rows, passages: Sequence[Row]) -> None:
        vector = {} if rows.settings.has_words else {"vector": NO_VECTOR}  # BM25 makes its own
        self._connection.upsert(rows.passages, ({**row, **vector} for row in passages))

    def _write_vectors(
        self, rows: Rows, space: Space, passages: Sequence[Row], vectors: Matrix
    ) -> None:
        columns = ("passage", "document", "fields")
        written = (
            {name: row[name] for name in columns} | {"vector": vector}
            for row, vector in zip(passages, vectors, strict=True)
        )
        self._connection.upsert(rows.vectors(space), written)

    def _renew_fields(self, rows: Rows, documents: Sequence[Row]) -> None:
        """Write the passages and vectors of documents again, with new values for filters."""
        fields = {row["document"]: row["fields"] for row in documents}
        ids = [passage for row in documents for passage in passage_ids(row)]
        passages = [
            row | {"fields": fields[row["document"]]}
            for row in rows.listed(rows.passages, "passage", ids, list(PASSAGE_COLUMNS))
        ]
        self._write_passages(rows, passages)
        by_id = {row["passage"]: row for row in passages}
        for space in rows.settings.spaces:
            columns = ["passage", "vector"]
            found = list(rows.listed(rows.vectors(space), "passage", ids, columns))
            written = [by_id[row["passage"]] for row in found]
            self._write_vectors(rows, space, written, numpy.array([row["vector"] for row in found]))

    def _delete_passages(self, rows: Rows, ids: Sequence[int]) -> None:
        """Delete passages after their vectors."""
        for space in rows.settings.spaces:
            self._delete(rows.vectors(space), "passage", ids)
        self._delete(rows.passages, "passage", ids)

    def _delete(self, collection: str, key: str, values: Sequence[Any]) -> None:
        for start in range(0, len(values), IDS_AT_ONCE):
            condition = one_of(key, values[start : start + IDS_AT_ONCE])
            self._connection.call("delete", collection, filter=condition)


def _numbered(
    settings: Settings, documents: Sequence[NewDocument], stored: Mapping[str, Row]
) -> tuple[list[Row], list[Row]]:
    """The rows of documents and of their new passages.

    Args:
        settings: with the numbers that are taken.
        documents: the documents.
        stored: the present rows of those that are not new, by id.
    """
    number, first = settings.last_document, settings.last_passage + 1
    written: list[Row] = []
    passages: list[Row] = []
    for document in documents:
        present = stored.get(document.id)
        number += present is None
        own = present["document"] if present else number
        written.append(document_row(document, own, first, present))
        passages += passage_rows(document, written[-1])
        first += len(document.passages or ())
    return written, passages


def _passages_of(rows: Rows, documents: Sequence[Row]) -> list[int]:
    """The ids of all passages of documents, those that a killed command left among them."""
    numbers = [row["document"] for row in documents]
    listed = rows.listed(rows.passages, "document", numbers, ["passage"])
    return [row["passage"] for row in listed]
