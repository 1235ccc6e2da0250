"""One committed state of the database: its documents, passages, spaces and fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select, true

from semsearch.errors import DamagedIndexError
from semsearch.protocols import Matrix
from semsearch.records import Chunk, Document, Kind
from semsearch.stores.local import fields as kinds
from semsearch.stores.local.restrictions import RestrictionMemory
from semsearch.stores.local.schema import (
    FORMAT_VERSION,
    chunks,
    documents,
    get_index_type,
    get_language,
    get_setting,
    texts,
    values,
    values_later,
    vectors,
)
from semsearch.stores.local.search import StateSearch, ViewOf
from semsearch.stores.local.snapshot import snapshot_name, snapshot_record
from semsearch.stores.local.spaces import (
    all_spaces,
    from_bytes,
    stored_matrix,
    vector_blocks,
)
from semsearch.stores.protocol import (
    EVERYTHING,
    FoundPassage,
    IndexInfo,
    NewPassage,
    Passages,
    Seen,
    Selection,
    SnapshotInfo,
    Space,
    StoredDocument,
    TextVectors,
    check_searchable,
)
from semsearch.vector_indexes import IndexType

if TYPE_CHECKING:
    from semsearch.filters import Condition

_DOCUMENTS = (
    select(documents, texts.c.text)
    .join(texts, texts.c.document_id == documents.c.document_id)
    .order_by(documents.c.document_id)
)


# Built once, because SQLAlchemy takes longer to build a statement than to run it.
_PASSAGES = (
    select(
        chunks.c.chunk_id,
        documents.c.external_id,
        chunks.c.start,
        chunks.c.end,
        chunks.c.text,
        documents.c.metadata,
        documents.c.title,
    )
    .join(documents)
    .where(chunks.c.chunk_id.in_(values_later("chunk_ids")))
)


class LocalState(StateSearch):
    """The state that a transaction reads; see `semsearch.stores.protocol.StoreState`.

    Args:
        connection: in a transaction.
        directory: the directory of the snapshots.
        view_of: returns the vectors of a space.
        memory: a cache about restrictions, shared with later states.
    """

    def __init__(
        self,
        connection: Connection,
        directory: Path,
        view_of: ViewOf,
        memory: RestrictionMemory,
    ) -> None:
        super().__init__(connection, view_of, memory)
        self._directory = directory

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a passage."""
        max_tokens: int = get_setting(self.connection, "chunk_max_tokens")
        return max_tokens

    @property
    def index_type(self) -> IndexType:
        """The requested type of vector index."""
        return get_index_type(self.connection)

    @property
    def unfinished_sync(self) -> int | None:
        """The number of documents before a sync that has not finished."""
        documents = get_setting(self.connection, "unfinished_sync", -1)
        return None if documents < 0 else documents

    @property
    def corpora(self) -> dict[str, dict[str, Any]]:
        """How corpora were read."""
        corpora: dict[str, dict[str, Any]] = get_setting(self.connection, "corpora", {})
        return corpora

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return all_spaces(self.connection)

    def info(self) -> IndexInfo:
        """The contents of the store."""
        spaces = self.spaces()
        records = {space.name: snapshot_record(self.connection, space) for space in spaces}
        files: dict[str, int] = {}
        for file in sorted(self._directory.iterdir()):
            with suppress(FileNotFoundError):  # a writer has just replaced it
                if file.is_file():
                    files[file.name] = file.stat().st_size
        return IndexInfo(
            path=self._directory,
            format=FORMAT_VERSION,
            documents=self.count(),
            chunks=self.connection.scalar(select(func.count()).select_from(chunks)) or 0,
            fields=kinds.all_fields(self.connection),
            spaces=spaces,
            snapshots={
                name: SnapshotInfo(
                    snapshot_name(name, record.generation),
                    record.kind,
                    record.vectors,
                    record.recall,
                )
                for name, record in records.items()
                if record
            },
            files=files,
            language=get_language(self.connection),
            indexed_fields=sorted(kinds.indexed_fields(self.connection)),
        )

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""
        query = select(func.count()).select_from(documents).where(self.selected(selection))
        return self.connection.scalar(query) or 0

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of all documents, or of selected ones, in the order of addition."""
        query = select(documents.c.external_id).where(self.selected(selection))
        query = query.order_by(documents.c.document_id).limit(limit)
        return list(self.connection.scalars(query))

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        found = self._documents(_DOCUMENTS.where(documents.c.external_id.in_(values(ids))))
        return {str(document.id): document for document in found.values()}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of addition."""
        return self._documents(_DOCUMENTS.where(documents.c.document_id > last).limit(limit))

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The stored records of the documents with these ids."""
        rows = self.connection.execute(
            select(documents).where(documents.c.external_id.in_(values(ids)))
        )
        return {
            row.external_id: StoredDocument(row.document_id, row.title, row.metadata, row.text_hash)
            for row in rows
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""
        rows = self.connection.execute(
            select(
                documents.c.external_id,
                chunks.c.start,
                chunks.c.end,
                chunks.c.text,
                chunks.c.text_hash,
            )
            .join(chunks, chunks.c.document_id == documents.c.document_id)
            .where(documents.c.external_id.in_(values(ids)))
            .order_by(chunks.c.chunk_id)
        )
        found: dict[str, list[NewPassage]] = {}
        for external_id, *passage in rows:
            found.setdefault(external_id, []).append(NewPassage(*passage))
        return found

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""
        of_text = chunks.c.text_hash.in_(values(hashes))
        # Of a text that many passages share, the vector of the last one.
        last = select(func.max(chunks.c.chunk_id)).where(of_text).group_by(chunks.c.text_hash)
        rows = self.connection.execute(
            select(vectors.c.space_id, chunks.c.text_hash, vectors.c.vector)
            .join(chunks, chunks.c.chunk_id == vectors.c.chunk_id)
            .where(chunks.c.chunk_id.in_(last))
        )
        by_space: dict[int, dict[str, bytes]] = {}
        for space_id, digest, vector in rows:
            by_space.setdefault(space_id, {})[digest] = vector
        found: TextVectors = {}
        for space in self.spaces() if by_space else []:
            stored = by_space.get(space.id, {})
            matrix = stored_matrix(space, list(stored.values()))
            found |= {(space.id, digest): row for digest, row in zip(stored, matrix, strict=True)}
        return found

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""
        check_searchable(space, self.spaces())
        query = (
            select(chunks.c.chunk_id, chunks.c.document_id, documents.c.external_id, chunks.c.text)
            .join(documents, documents.c.document_id == chunks.c.document_id)
            .order_by(chunks.c.chunk_id)
        )
        if condition is not None:
            query = query.where(self._restrictions.all_that_meet(condition))
        rows = self.connection.execute(query).all()
        chunk_ids = numpy.array([row.chunk_id for row in rows], numpy.int64)
        matrix = numpy.empty((len(rows), space.dimension), numpy.float32)
        filled = 0
        for ids, block in vector_blocks(self.connection, space):
            if condition is not None:
                wanted = numpy.isin(ids, chunk_ids)
                ids, block = ids[wanted], block[wanted]
            if not numpy.array_equal(ids, chunk_ids[filled : filled + len(ids)]):
                break
            matrix[filled : filled + len(ids)] = block
            filled += len(ids)
        if filled != len(rows):
            raise DamagedIndexError(
                "the passages do not match their vectors; see: semsearch verify"
            )
        return Passages(
            [row.external_id for row in rows],
            numpy.array([row.document_id for row in rows], numpy.int64),
            chunk_ids,
            [row.text for row in rows],
            matrix,
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""
        check_searchable(space, self.spaces())
        rows = self.connection.execute(
            select(documents.c.external_id, vectors.c.vector)
            .join_from(documents, chunks, chunks.c.document_id == documents.c.document_id)
            .join(vectors, vectors.c.chunk_id == chunks.c.chunk_id)
            .where(documents.c.external_id.in_(values(ids)), vectors.c.space_id == space.id)
            .order_by(chunks.c.chunk_id)
        )
        stored: dict[str, list[bytes]] = {}
        for external_id, vector in rows:
            stored.setdefault(external_id, []).append(vector)
        return {name: from_bytes(space, found) for name, found in stored.items()}

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""
        has_vector = exists().where(
            vectors.c.chunk_id == chunks.c.chunk_id, vectors.c.space_id == space.id
        )
        rows = self.connection.execute(
            select(chunks.c.chunk_id, chunks.c.text, documents.c.external_id)
            .join(documents, documents.c.document_id == chunks.c.document_id)
            .where(chunks.c.chunk_id > after, ~has_vector)
            .order_by(chunks.c.chunk_id)
            .limit(limit)
        )
        return [tuple(row) for row in rows]

    def selected(self, selection: Selection) -> ColumnElement[bool]:
        """The SQL condition of a selection."""
        clauses: list[ColumnElement[bool]] = [true()]
        if selection.ids is not None:
            clauses.append(documents.c.external_id.in_(values(selection.ids)))
        if selection.condition is not None:
            clauses.append(self._restrictions.all_that_meet(selection.condition))
        if selection.unseen:
            from semsearch.stores.local.run import was_seen

            clauses.append(~was_seen(documents.c.external_id))
        return and_(*clauses)

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""
        rows = self.connection.execute(
            select(vectors.c.chunk_id, vectors.c.vector).where(
                vectors.c.space_id == space.id, vectors.c.chunk_id.in_(values(chunk_ids))
            )
        )
        stored = {row.chunk_id: row.vector for row in rows}
        return from_bytes(space, [stored[chunk_id] for chunk_id in chunk_ids])

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids."""
        rows = self.connection.execute(_PASSAGES, {"chunk_ids": list(chunk_ids)})
        found = {row[0]: FoundPassage(Chunk(*row[:5]), json.loads(row[5]), row[6]) for row in rows}
        if not missing_ok and not found.keys() >= set(chunk_ids):
            raise DamagedIndexError("a passage has no document; see: semsearch verify")
        return found

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name."""
        return kinds.kinds_by_field(self.connection)

    def begin_run(self) -> None:
        """Start a run: no document has been seen."""
        from semsearch.stores.local.run import begin

        begin(self.connection)

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has seen."""
        from semsearch.stores.local.run import seen

        return seen(self.connection, ids)

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Mark documents as seen."""
        from semsearch.stores.local.run import mark

        mark(self.connection, seen)

    def _documents(self, query: Select[Any]) -> dict[int, Document]:
        """The documents that a query of `_DOCUMENTS` finds, by number."""
        return {
            row.document_id: Document(
                row.external_id, row.text, row.title, json.loads(row.metadata)
            )
            for row in self.connection.execute(query)
        }
