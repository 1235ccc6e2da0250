"""One committed state of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, select, true

from semsearch.protocols import Matrix
from semsearch.records import Document, Kind, Passage
from semsearch.storage.interface import (
    EVERYTHING,
    NO_RESTRICTION,
    FieldValues,
    FoundPassage,
    IndexInfo,
    NewPassage,
    Passages,
    Restriction,
    ScoredPassage,
    Selection,
    Settings,
    SnapshotInfo,
    StoredDocument,
    TextVectors,
)
from semsearch.storage.spaces import Space, check_searchable
from semsearch.storage.sqlite import fields as kinds
from semsearch.storage.sqlite.facets import Columns
from semsearch.storage.sqlite.restrictions import Restricted, sql_condition
from semsearch.storage.sqlite.schema import (
    FORMAT_VERSION,
    Revision,
    documents,
    get_revision,
    passages,
    read_settings,
    rows_for,
    texts,
    values,
    values_later,
    vectors,
)
from semsearch.storage.sqlite.spaces import (
    BLOCK_ROWS,
    all_spaces,
    from_bytes,
    snapshot_name,
    snapshot_record,
)

if TYPE_CHECKING:
    from semsearch.filters import Condition
    from semsearch.storage.sqlite.vectors import VectorView
    from semsearch.storage.words import Analyser

#: The number of restrictions whose documents are cached.
RESTRICTIONS_KEPT = 16

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


class Cache:
    """What readers have loaded, for the next ones."""

    def __init__(self) -> None:
        #: With the revision, by the identity of the index and the space.
        self.views: dict[tuple[str, int], tuple[int, VectorView]] = {}
        self.restricted: dict[tuple[Revision, str], Restricted] = {}
        self.columns: dict[Revision, Columns] = {}
        self.spaces: dict[Revision, list[Space]] = {}


class SqliteReader:
    """The state that a transaction reads; see `semsearch.storage.interface.Reader`."""

    def __init__(self, connection: Connection, directory: Path, cache: Cache) -> None:
        self.connection = connection
        self._directory = directory
        self._cache = cache

    def settings(self) -> Settings:
        return read_settings(self.connection)

    def spaces(self) -> list[Space]:
        found = self._cache.spaces.get(self._revision)  # other threads may read other states
        if found is None:
            found = all_spaces(self.connection)
            self._cache.spaces = {self._revision: found}
        return list(found)

    def info(self) -> IndexInfo:
        spaces = self.spaces()
        snapshots = {}
        for space in spaces:
            if (record := snapshot_record(self.connection, space)) and record.bytes:
                file = snapshot_name(space.name, record.generation)
                snapshots[space.name] = SnapshotInfo(
                    file, record.kind, record.vectors, record.recall
                )
        files: dict[str, int] = {}
        for entry in sorted(self._directory.iterdir()):
            with suppress(FileNotFoundError):  # a writer has just replaced it
                if entry.is_file():
                    files[entry.name] = entry.stat().st_size
        return IndexInfo(
            path=self._directory,
            format=FORMAT_VERSION,
            documents=self.count(),
            passages=self.connection.scalar(select(func.count()).select_from(passages)) or 0,
            fields=kinds.all_fields(self.connection),
            spaces=spaces,
            snapshots=snapshots,
            files=files,
            language=self.settings().language,
            indexed_fields=sorted(kinds.indexed_fields(self.connection)),
        )

    def fields(self) -> dict[str, set[Kind]]:
        return kinds.kinds_by_field(self.connection)

    def field_values(self, condition: Condition | None = None) -> list[FieldValues]:
        selected = None if condition is None else sql_condition(self.connection, condition)
        return self._columns().count(self.connection, self.fields(), selected)

    def texts_like(self, field: str, typed: str, limit: int = 20) -> list[tuple[str, int]]:
        return self._columns().texts_like(field, typed, limit)

    def _columns(self) -> Columns:
        """The values of fields, which are cached until the state changes."""
        found = self._cache.columns.get(self._revision)
        if found is None:
            found = Columns(self.connection)
            self._cache.columns = {self._revision: found}
        return found

    def count(self, selection: Selection = EVERYTHING) -> int:
        query = select(func.count()).select_from(documents).where(self.selected(selection))
        return self.connection.scalar(query) or 0

    def ids(
        self, selection: Selection = EVERYTHING, limit: int | None = None, offset: int = 0
    ) -> list[str]:
        query = select(documents.c.external_id).where(self.selected(selection))
        query = query.order_by(documents.c.document_id).limit(limit).offset(offset)
        return list(self.connection.scalars(query))

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        query = _DOCUMENTS.where(documents.c.external_id.in_(values(ids)))
        return {row.external_id: _document(row) for row in self.connection.execute(query)}

    def scan(self, size: int = 256) -> Iterator[list[Document]]:
        last = 0
        while True:
            after = _DOCUMENTS.where(documents.c.document_id > last).limit(size)
            rows = self.connection.execute(after).all()
            if not rows:
                return
            last = rows[-1].document_id
            yield [_document(row) for row in rows]

    def stored_documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        columns = [documents.c[name] for name in ("external_id", *StoredDocument._fields)]
        query = select(*columns).where(documents.c.external_id.in_(values(ids)))
        return {row[0]: StoredDocument(*row[1:]) for row in self.connection.execute(query)}

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
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
        of_text = passages.c.text_hash.in_(values(hashes))
        # Of a text that many passages share, the vector of the last one.
        last = select(func.max(passages.c.passage_id)).where(of_text).group_by(passages.c.text_hash)
        rows = self.connection.execute(
            select(vectors.c.space_id, passages.c.text_hash, vectors.c.vector)
            .join(passages, passages.c.passage_id == vectors.c.passage_id)
            .where(passages.c.passage_id.in_(last))
        )
        spaces = {space.id: space for space in self.spaces()}
        return {
            (space_id, digest): from_bytes(spaces[space_id], [vector])[0]
            for space_id, digest, vector in rows
        }

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        check_searchable(space, self.spaces())
        query = (
            select(
                passages.c.passage_id,
                passages.c.document_id,
                documents.c.external_id,
                passages.c.text,
                vectors.c.vector,
            )
            .join(documents, documents.c.document_id == passages.c.document_id)
            .join(vectors, vectors.c.passage_id == passages.c.passage_id)
            .where(vectors.c.space_id == space.id)
            .order_by(passages.c.passage_id)
        )
        if condition is not None:
            query = query.where(sql_condition(self.connection, condition))
        rows: list[Any] = []
        blocks = [numpy.empty((0, space.dimension), numpy.float32)]
        for block in self.connection.execute(query).partitions(BLOCK_ROWS):
            rows += [row[:-1] for row in block]
            blocks.append(from_bytes(space, [row.vector for row in block]))
        return Passages(
            [row[2] for row in rows],
            numpy.array([row[1] for row in rows], numpy.int64),
            numpy.array([row[0] for row in rows], numpy.int64),
            [row[3] for row in rows],
            numpy.concatenate(blocks),
        )

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
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
            clauses.append(sql_condition(self.connection, selection.condition))
        return and_(*clauses)

    def prepare(self, space: Space) -> None:
        self._view(space)

    def search_vectors(
        self, space: Space, queries: Matrix, k: int, restriction: Restriction = NO_RESTRICTION
    ) -> list[list[ScoredPassage]]:
        from semsearch.storage.sqlite.vectors import search_vectors

        restricted = self._restricted(restriction)
        return search_vectors(self.connection, self._view(space), restricted, queries, k)

    def search_bm25(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        phrases: Sequence[str] = (),
    ) -> list[ScoredPassage]:
        from semsearch.storage.sqlite.bm25 import search_bm25

        restricted = self._restricted(restriction)
        return search_bm25(self.connection, self._analyser, restricted, text, k, phrases)

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        from semsearch.storage.sqlite.bm25 import matched_words

        return matched_words(self.connection, self._analyser, text, passage_ids)

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        rows = rows_for(self.connection, _PASSAGES, list(passage_ids))
        return {row[0]: FoundPassage(Passage(*row[:5]), json.loads(row[5]), row[6]) for row in rows}

    @cached_property
    def _revision(self) -> Revision:
        return get_revision(self.connection)

    @cached_property
    def _analyser(self) -> Analyser:
        from semsearch.storage.sqlite.bm25 import stored_analyser

        return stored_analyser(self.connection)

    def _view(self, space: Space) -> VectorView:
        revision = self._revision
        number, view = self._cache.views.get((revision.identity, space.id), (-1, None))
        if view is None or number != revision.number:
            from semsearch.storage.sqlite.vectors import VectorView

            check_searchable(space, self.spaces())
            earlier = view if number < revision.number else None
            view = VectorView(self.connection, self._directory, space, earlier)
            self._cache.views[revision.identity, space.id] = revision.number, view
        return view

    def _restricted(self, restriction: Restriction) -> Restricted:
        key, kept = (self._revision, repr(restriction)), self._cache.restricted  # 1 equals true
        found = kept.get(key)
        if found is None:
            found = Restricted(self.connection, restriction)
            if len(kept) >= RESTRICTIONS_KEPT:
                kept.clear()
            kept[key] = found
        return found


def _document(row: Row[Any]) -> Document:
    """The document of a row of `_DOCUMENTS`."""
    return Document(row.external_id, row.text, row.title, json.loads(row.metadata))
