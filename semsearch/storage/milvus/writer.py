"""Writing an index on Milvus, which has no transactions.

New documents get their rows first, as yet without passages; then passages are written, and their
vectors. Changed documents get their new rows before their former passages are deleted. Until all is
done, a row has no hash of its text: if the command is killed, the next one that reads the document
writes it again, and deletes all other passages.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count, pairwise
from typing import Any, NoReturn

from semsearch.errors import IndexClosedError, UnsupportedByStoreError
from semsearch.protocols import Encoder, Matrix
from semsearch.storage.interface import (
    EVERYTHING,
    Fault,
    NewDocument,
    Selection,
    Settings,
    TextVectors,
)
from semsearch.storage.milvus.conditions import changed_counts, filter_json
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.milvus.reader import MilvusReader
from semsearch.storage.milvus.rows import Rows
from semsearch.storage.milvus.schema import (
    MAX_BYTES,
    NO_VECTOR,
    VECTOR_COLUMNS,
    IndexRecord,
    build_index,
    create,
)
from semsearch.storage.milvus.verification import find_faults, find_remains
from semsearch.storage.spaces import Space, described_space
from semsearch.vector_indexes import FLAT, IndexType, chosen_kind

logger = logging.getLogger(__name__)


class MilvusWriter:
    """The right to write; see `semsearch.storage.interface.Writer`.

    Args:
        connection: to Milvus.
        read: returns the current state, given the record.
        record: of the index.
    """

    def __init__(
        self,
        connection: Connection,
        read: Callable[[IndexRecord], MilvusReader],
        record: IndexRecord,
    ) -> None:
        self._connection = connection
        self._read = read
        self._record = record
        self._is_open = True

    @contextmanager
    def read(self) -> Iterator[MilvusReader]:
        """The current state, which no other writer of this machine changes."""
        yield self._state()

    def close(self) -> None:
        """Release the right to write."""
        self._is_open = False

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or update those with the same ids."""
        state = self._state()
        documents, vectors = _with_kept_passages(state, documents, vectors)
        record = state.record
        names = [document.id for document in documents]
        stored = {row["id"]: row for row in state.named(names, ["metadata"])}
        written, passages = _numbered(record, documents, stored)
        fields = changed_counts(record.fields, [row["metadata"] for row in written])
        self._change(
            last_document=max(record.last_document, *(row["document"] for row in written)),
            last_passage=record.last_passage + len(passages),
            fields=fields,
        )
        unfinished = {"first": 0, "passages": 0, "text_hash": ""}
        new = (row | unfinished for row in written if row["id"] not in stored)
        self._connection.upsert(state.target.name, new)
        former = _passages_of(state, stored.values())
        own = {} if record.has_words else {"vector": NO_VECTOR}  # Milvus makes those of BM25
        self._connection.upsert(state.target.passages, (row | own for row in passages))
        for space in record.spaces:
            self._write_vectors(space, passages, vectors)
        if former:
            half_written = (row | {"text_hash": ""} for row in written)
            self._connection.upsert(state.target.name, half_written)
            self._delete_passages(state, former)
        self._connection.upsert(state.target.name, written)
        replaced = [row["metadata"] for row in stored.values()]
        self._change(fields=changed_counts(fields, [], replaced))

    def oversized_documents(self, documents: Sequence[NewDocument]) -> dict[str, str]:
        """Why Milvus cannot hold documents, by the ids of those that are too large."""
        found: dict[str, str] = {}
        for document in documents:
            row = _document_row(document, 0, 0)
            for name, value in chain(row.items(), *map(dict.items, _passage_rows(document, row))):
                text = json.dumps(value, ensure_ascii=False) if name == "fields" else value
                if isinstance(text, str) and (size := len(text.encode())) > MAX_BYTES:
                    reason = f"its '{name}' has {size:,} bytes; Milvus takes up to {MAX_BYTES:,}"
                    found.setdefault(document.id, reason)
        return found

    def remove(self, selection: Selection) -> int:
        """Remove documents with their passages and vectors; returns their number."""
        state = self._state()
        removed, fields = 0, state.record.fields
        for documents in state.selected(selection, ["metadata"]):
            self._delete_passages(state, _passages_of(state, documents))
            self._connection.delete(state.target.name, "id", [row["id"] for row in documents])
            fields = changed_counts(fields, [], [row["metadata"] for row in documents])
            removed += len(documents)
        self._change(fields=fields)
        return removed

    def configure(self, settings: Settings) -> None:
        """Change the settings of the index."""
        if settings.index_type.recall != IndexType().recall:
            raise UnsupportedByStoreError("on Milvus, the recall cannot be chosen")
        if settings.language is not None:
            raise UnsupportedByStoreError("on Milvus, BM25 has no languages")
        self._change(
            index_type=settings.index_type.kind,
            unfinished_sync=settings.unfinished_sync,
            corpora=settings.corpora,
        )

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """Add a space, which is incomplete."""
        state = self._state()
        spaces = state.spaces()
        space = described_space(encoder, dtype, spaces, complete=not state.count())
        name, kind = state.target.vectors(space), state.record.index_kind
        create(self._connection, name, VECTOR_COLUMNS, space.dimension, kind)
        self._change(spaces=[*spaces, space])
        return space

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""
        state = self._state()
        self._change(spaces=[other for other in state.spaces() if other.id != space.id])
        self._connection.call("drop_collection", state.target.vectors(space))

    def put_vectors(self, space: Space, passage_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the missing vectors of passages."""
        state = self._state()
        columns = [*VECTOR_COLUMNS, "text_hash"]
        passages = state.passages_by_id(state.target.passages, passage_ids, columns)
        rows = [passages[passage_id] for passage_id in passage_ids]
        hashes = [(space.id, row["text_hash"]) for row in rows]
        self._write_vectors(space, rows, dict(zip(hashes, vectors, strict=True)))

    def complete(self, space: Space) -> None:
        """Make a space searchable, once each passage has a vector."""
        self._change(
            spaces=[
                other._replace(complete=other.complete or other.id == space.id)
                for other in self._state().spaces()
            ]
        )

    def index_field(self, name: str) -> NoReturn:
        """Refused: Milvus tests the fields of all documents."""
        raise UnsupportedByStoreError("an index on Milvus has no indexes of fields")

    def optimise(self, *, thoroughly: bool = False) -> None:
        """Let Milvus build another kind of vector index if one is requested or due."""
        state = self._state()
        widest = max((space.dimension for space in state.spaces()), default=0)
        wanted = chosen_kind(state.settings().index_type, state.size(state.target.passages), widest)
        kind = "FLAT" if wanted == FLAT else "IVF_FLAT"
        if kind != state.record.index_kind:
            for collection in map(state.target.vectors, state.spaces()):
                self._connection.call("release_collection", collection)
                self._connection.call("drop_index", collection, "vector")
                build_index(self._connection, collection, kind)
            self._change(index_kind=kind)

    def compact(self) -> None:
        """Ask Milvus to rewrite its files without deleted rows, which it does in its own time."""
        for collection in self._state().collections():
            self._connection.call("compact", collection)

    def verify(self) -> list[Fault]:
        """Check the store and return all faults."""
        return find_faults(self._state())

    def repair(self) -> None:
        """Remove what belongs to no document, and documents that lack passages; count fields."""
        state = self._state()
        remains = find_remains(state)
        if remains.documents:
            names = remains.names()
            logger.warning("documents that lack passages are removed: %s; index them again", names)
            self.remove(Selection([row["id"] for row in remains.documents]))
        self._delete_passages(state, remains.passages)
        for space in state.spaces():
            self._connection.delete(
                state.target.vectors(space), "passage", remains.vectors[space.id]
            )
        pages = self._state().selected(EVERYTHING, ["metadata"])
        fields = changed_counts({}, (row["metadata"] for page in pages for row in page))
        spaces = [space._replace(complete=False) for space in state.spaces()]
        self._change(fields=fields, spaces=spaces)

    def _state(self) -> MilvusReader:
        if not self._is_open:
            raise IndexClosedError("the writer is closed: its `with` block has ended")
        return self._read(self._record)

    def _change(self, **changes: Any) -> None:
        """Change some of the record."""
        changed = self._state().record._replace(**changes)
        self._connection.upsert(self._connection.target.name, [changed.row()])
        self._record = changed

    def _write_vectors(self, space: Space, passages: Iterable[Row], vectors: TextVectors) -> None:
        """Write the vectors of passages; an incomplete space may lack some."""
        rows = (
            {name: row[name] for name in VECTOR_COLUMNS} | {"vector": vectors[key]}
            for row in passages
            if (key := (space.id, row["text_hash"])) in vectors or space.complete
        )
        self._connection.upsert(self._connection.target.vectors(space), rows)

    def _delete_passages(self, rows: Rows, ids: Sequence[int]) -> None:
        """Delete passages after their vectors."""
        for collection in reversed(rows.collections()[1:]):
            self._connection.delete(collection, "passage", ids)


def _with_kept_passages(
    state: MilvusReader, documents: Sequence[NewDocument], vectors: TextVectors
) -> tuple[list[NewDocument], TextVectors]:
    """Documents with the passages that they keep, and their vectors."""
    kept = state.passages_of([one.id for one in documents if one.passages is None])
    hashes = {passage.text_hash for passages in kept.values() for passage in passages}
    return (
        [one._replace(passages=kept.get(one.id, one.passages)) for one in documents],
        {**state.vectors_of_texts(sorted(hashes)), **vectors},
    )


def _numbered(
    record: IndexRecord, documents: Sequence[NewDocument], stored: Mapping[str, Row]
) -> tuple[list[Row], list[Row]]:
    """The rows of documents, those that are `stored` with their numbers, and of all passages."""
    numbers, first = count(record.last_document + 1), record.last_passage + 1
    written: list[Row] = []
    passages: list[Row] = []
    for document in documents:
        present = stored.get(document.id)
        number = present["document"] if present else next(numbers)
        written.append(_document_row(document, number, first + len(passages)))
        passages += _passage_rows(document, written[-1])
    return written, passages


def _passages_of(rows: Rows, documents: Iterable[Row]) -> list[int]:
    """The ids of all passages of documents, with those that a killed command left."""
    numbers = [row["document"] for row in documents]
    listed = rows.listed(rows.target.passages, "document", numbers, ["passage"])
    return [row["passage"] for row in listed]


def _document_row(document: NewDocument, number: int, first: int) -> Row:
    passages = document.passages or ()
    return {
        "id": document.id,
        "document": number,
        "first": first,
        "passages": len(passages),
        "title": json.dumps(document.title, ensure_ascii=False),
        "metadata": document.metadata,
        "ending": document.text[passages[-1].end :] if passages else "",
        "text_hash": document.text_hash,
        "fields": filter_json(document.id, document.title, document.metadata),
        "vector": NO_VECTOR,
    }


def _passage_rows(document: NewDocument, row: Row) -> list[Row]:
    """The rows of the passages of a document, whose own row is given."""
    passages = document.passages or ()
    places = [0, *(place for passage in passages for place in (passage.start, passage.end))]
    gaps = [document.text[end:start] for end, start in pairwise(places)][::2]
    return [
        {
            "passage": row["first"] + place,
            "id": row["id"],
            "document": row["document"],
            "before": before,
            "fields": row["fields"],
            **passage._asdict(),
        }
        for place, (passage, before) in enumerate(zip(passages, gaps, strict=True))
    ]
