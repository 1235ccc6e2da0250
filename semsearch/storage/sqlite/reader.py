"""One committed state of the database: its documents, passages, spaces and fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, select, true

from semsearch.errors import DamagedIndexError
from semsearch.records import Document, Kind, Passage
from semsearch.storage.interface import (
    EVERYTHING,
    FieldValues,
    FoundPassage,
    IndexInfo,
    NewPassage,
    Passages,
    Selection,
    Settings,
    SnapshotInfo,
    StoredDocument,
    TextVectors,
)
from semsearch.storage.spaces import Space, check_searchable
from semsearch.storage.sqlite import fields as kinds
from semsearch.storage.sqlite.restrictions import RestrictionMemory
from semsearch.storage.sqlite.schema import (
    FORMAT_VERSION,
    documents,
    get_language,
    get_revision,
    passages,
    read_settings,
    texts,
    values,
    values_later,
    vectors,
)
from semsearch.storage.sqlite.search import StateSearch, ViewOf
from semsearch.storage.sqlite.snapshot import snapshot_name, snapshot_record
from semsearch.storage.sqlite.spaces import (
    all_spaces,
    stored_matrix,
    vector_blocks,
)

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
        passages.c.passage_id,
        documents.c.external_id,
        passages.c.start,
        passages.c.end,
        passages.c.text,
        documents.c.metadata,
        documents.c.title,
    )
    .join(documents)
    .where(passages.c.passage_id.in_(values_later("passage_ids")))
)


class SqliteReader(StateSearch):
    """The state that a transaction reads; see `semsearch.storage.interface.Reader`.

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

    def settings(self) -> Settings:
        """The settings of the index."""
        return read_settings(self.connection)

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
            passages=self.connection.scalar(select(func.count()).select_from(passages)) or 0,
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
        query = _DOCUMENTS.where(documents.c.external_id.in_(values(ids)))
        return {row.external_id: _document(row) for row in self.connection.execute(query)}

    def scan(self, size: int = 256) -> Iterator[list[Document]]:
        """All documents in insertion order, in lists of at most `size`."""
        last = 0
        while True:
            after = _DOCUMENTS.where(documents.c.document_id > last).limit(size)
            rows = self.connection.execute(after).all()
            if not rows:
                return
            last = rows[-1].document_id
            yield [_document(row) for row in rows]

    def stored_documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The records of documents to compare with, by id."""
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
                passages.c.start,
                passages.c.end,
                passages.c.text,
                passages.c.text_hash,
            )
            .join(passages, passages.c.document_id == documents.c.document_id)
            .where(documents.c.external_id.in_(values(ids)))
            .order_by(passages.c.passage_id)
        )
        found: dict[str, list[NewPassage]] = {}
        for external_id, *passage in rows:
            found.setdefault(external_id, []).append(NewPassage(*passage))
        return found

    def vectors_of_texts(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""
        of_text = passages.c.text_hash.in_(values(hashes))
        # Of a text that many passages share, the vector of the last one.
        last = select(func.max(passages.c.passage_id)).where(of_text).group_by(passages.c.text_hash)
        rows = self.connection.execute(
            select(vectors.c.space_id, passages.c.text_hash, vectors.c.vector)
            .join(passages, passages.c.passage_id == vectors.c.passage_id)
            .where(passages.c.passage_id.in_(last))
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
            select(
                passages.c.passage_id,
                passages.c.document_id,
                documents.c.external_id,
                passages.c.text,
            )
            .join(documents, documents.c.document_id == passages.c.document_id)
            .order_by(passages.c.passage_id)
        )
        if condition is not None:
            query = query.where(self._restrictions.all_that_meet(condition))
        rows = self.connection.execute(query).all()
        passage_ids = numpy.array([row.passage_id for row in rows], numpy.int64)
        matrix = numpy.empty((len(rows), space.dimension), numpy.float32)
        filled = 0
        for ids, block in vector_blocks(self.connection, space):
            if condition is not None:
                wanted = numpy.isin(ids, passage_ids)
                ids, block = ids[wanted], block[wanted]
            if not numpy.array_equal(ids, passage_ids[filled : filled + len(ids)]):
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
            passage_ids,
            [row.text for row in rows],
            matrix,
        )

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """Passage id, text and document id of passages above an id that have no vector."""
        has_vector = exists().where(
            vectors.c.passage_id == passages.c.passage_id, vectors.c.space_id == space.id
        )
        rows = self.connection.execute(
            select(passages.c.passage_id, passages.c.text, documents.c.external_id)
            .join(documents, documents.c.document_id == passages.c.document_id)
            .where(passages.c.passage_id > after, ~has_vector)
            .order_by(passages.c.passage_id)
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
        return and_(*clauses)

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        """The passages with these ids, as far as they exist."""
        rows = self.connection.execute(_PASSAGES, {"passage_ids": list(passage_ids)})
        return {row[0]: FoundPassage(Passage(*row[:5]), json.loads(row[5]), row[6]) for row in rows}

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name."""
        return kinds.kinds_by_field(self.connection)

    def field_values(self) -> list[FieldValues]:
        """The metadata fields with frequent texts and bounds, cached until the state changes."""
        revision = get_revision(self.connection)
        known = self._memory.values
        if revision not in known:
            counted = kinds.field_values(self.connection)
            known.clear()
            known[revision] = counted
        return known[revision]


def _document(row: Row[Any]) -> Document:
    """The document of a row of `_DOCUMENTS`."""
    return Document(row.external_id, row.text, row.title, json.loads(row.metadata))
