"""Writing the database: one transaction per change; snapshots follow. Verification and repair."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import faiss  # noqa: F401 - needed at the end, and imported while texts are encoded
import numpy
from sqlalchemy import ColumnElement, Connection, column, delete, func, select, table, update
from sqlalchemy.exc import DatabaseError

from semsearch.errors import IndexBusyError, quantity
from semsearch.protocols import Encoder, Matrix
from semsearch.storage.interface import (
    Fault,
    NewDocument,
    Selection,
    Settings,
    TextVectors,
    text_hash,
)
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.bm25 import (
    add_words,
    analyse_again,
    analysed_text,
    count_frequent_words,
    rebuild_words,
    remove_words,
)
from semsearch.storage.sqlite.fields import count_kinds, index_field, rebuild_kinds
from semsearch.storage.sqlite.reader import Cache, SqliteReader
from semsearch.storage.sqlite.schema import (
    documents,
    insert_rows,
    next_revision,
    passages,
    read_settings,
    snapshots,
    spaces,
    texts,
    values,
    vectors,
    write_settings,
)
from semsearch.storage.sqlite.spaces import (
    STORED,
    all_spaces,
    count_deleted,
    insert_space,
    open_snapshot,
    refresh,
    remove_leftovers,
    snapshot_name,
    snapshot_record,
    to_bytes,
    vector_blocks,
)
from semsearch.storage.words import Analyser

_sequence = table("sqlite_sequence", column("name"), column("seq"))
#: The highest passage id ever used, deleted passages included.
_LAST_PASSAGE_ID = select(func.coalesce(func.max(_sequence.c.seq), 0)).where(
    _sequence.c.name == passages.name
)


class SqliteWriter:
    """A writer of a local store, on a connection whose transactions begin with the write lock."""

    def __init__(self, connection: Connection, directory: Path, cache: Cache) -> None:
        self._connection = connection
        self._directory = directory
        self._cache = cache

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        with self._connection.begin():
            yield SqliteReader(self._connection, self._directory, self._cache)

    def oversized_documents(self, documents: Sequence[NewDocument]) -> Mapping[str, str]:
        """None: SQLite holds texts of up to a gigabyte."""
        return {}

    def put(self, new: Sequence[NewDocument], text_vectors: TextVectors) -> None:
        with self._connection.begin():
            owners = self._put_documents(new)
            cut = [one for one in new if one.passages is not None]
            self._put_passages(cut, owners, text_vectors)
            next_revision(self._connection)

    def remove(self, selection: Selection) -> int:
        with self.read() as reader:
            condition = reader.selected(selection)
            remove_words(self._connection, condition)
            count_kinds(self._connection, condition, -1)
            owners = select(documents.c.document_id).where(condition)
            gone = select(func.count()).where(passages.c.document_id.in_(owners))
            count_deleted(self._connection, self._connection.execute(gone).scalar_one())
            removed = self._connection.execute(delete(documents).where(condition)).rowcount
            if removed:
                next_revision(self._connection)
            return removed

    def configure(self, settings: Settings) -> None:
        """Change the settings of the index; passages are analysed again if the language changes."""
        with self._connection.begin():
            before = read_settings(self._connection)
            write_settings(self._connection, settings)
            if settings.language != before.language:
                analyse_again(self._connection, settings.language)
                next_revision(self._connection)

    def add_space(self, encoder: Encoder) -> Space:
        with self._connection.begin():
            next_revision(self._connection)
            return insert_space(self._connection, encoder, complete=False)

    def drop_space(self, space: Space) -> None:
        with self._connection.begin():
            self._connection.execute(delete(spaces).where(spaces.c.space_id == space.id))
            next_revision(self._connection)
        remove_leftovers(self._connection, self._directory, keep_previous=True)

    def put_vectors(self, space: Space, passage_ids: Sequence[int], matrix: Matrix) -> None:
        with self._connection.begin():
            self._put_vectors(space, passage_ids, matrix)

    def complete(self, space: Space) -> None:
        with self._connection.begin():
            self._connection.execute(
                update(spaces).where(spaces.c.space_id == space.id).values(complete=1)
            )
            next_revision(self._connection)

    def describe(self, space: Space, description: Mapping[str, Any]) -> None:
        with self._connection.begin():
            written = {"description": json.dumps(dict(description))}
            self._connection.execute(
                update(spaces).where(spaces.c.space_id == space.id).values(written)
            )
            next_revision(self._connection)

    def index_field(self, name: str) -> None:
        with self._connection.begin():
            index_field(self._connection, name)
            next_revision(self._connection)

    def optimise(self) -> None:
        """Write new snapshots of complete spaces whose snapshots are out of date."""
        with self._connection.begin():
            count_frequent_words(self._connection)
        for space in self._spaces():
            if space.complete:
                refresh(self._connection, self._directory, space)

    def compact(self) -> None:
        """Rewrite all files without deleted data.

        SQLite overwrites freed space with zeros (`secure_delete`), but BM25 keeps deleted words
        until it is rebuilt, files do not shrink, and snapshots keep deleted vectors. The index can
        be read meanwhile, and killing the process does no harm.
        """
        for space in self._spaces():
            if space.complete:
                refresh(self._connection, self._directory, space, thoroughly=True)
            else:  # vectors filled in later would be neither in its snapshot nor recent
                with self._connection.begin():
                    of_space = snapshots.c.space_id == space.id
                    self._connection.execute(delete(snapshots).where(of_space))
        with self._connection.begin():
            rebuild_kinds(self._connection)
            rebuild_words(self._connection)
        remove_leftovers(self._connection, self._directory, keep_previous=False)
        raw: Any = self._connection.connection.driver_connection  # they run in no transaction
        raw.execute("VACUUM")
        busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise IndexBusyError(
                f"{self._directory} is being read, by this process or another, so its log still "
                "holds deleted data; run semsearch compact again without readers"
            )

    def verify(self) -> list[Fault]:
        with self._connection.begin() as transaction:
            try:
                found = list(_database_faults(self._connection))
                if all(fault.repairable for fault in found):
                    found += _content_faults(self._connection)
                    for space in all_spaces(self._connection):
                        found += _vector_faults(self._connection, self._directory, space)
            except DatabaseError as error:
                return [Fault(f"the database is damaged ({error.orig})", repairable=False)]
            finally:
                transaction.rollback()  # FTS5 cannot commit the check of damaged tables
        return found

    def repair(self) -> None:
        """Rebuild SQLite's indexes, the words for BM25 and the records of fields; no snapshots."""
        with self._connection.begin():
            self._connection.exec_driver_sql("REINDEX")
            rebuild_kinds(self._connection)
            rebuild_words(self._connection)
            # No file has this size. The next snapshot has another generation, also for readers.
            self._connection.execute(update(snapshots).values(bytes=0))
            for space in all_spaces(self._connection):
                if _lacking(self._connection, space):
                    of_space = vectors.c.space_id == space.id
                    damaged = delete(vectors).where(of_space, ~_sound(space))
                    self._connection.execute(damaged)
                    incomplete = update(spaces).where(spaces.c.space_id == space.id)
                    self._connection.execute(incomplete.values(complete=0))
            next_revision(self._connection)

    def _spaces(self) -> list[Space]:
        with self._connection.begin():
            return all_spaces(self._connection)

    def _put_documents(self, new: Sequence[NewDocument]) -> dict[str, int]:
        """Write the rows of documents; returns their numbers by id."""
        ids = documents.c.external_id.in_(values(one.id for one in new))
        count_kinds(self._connection, ids, -1)
        insert_rows(
            self._connection,
            documents,
            ["external_id", "title", "metadata", "text_hash"],
            [(one.id, one.title, one.metadata, one.text_hash) for one in new],
            key="external_id",
        )
        rows = select(documents.c.external_id, documents.c.document_id).where(ids)
        numbers = {row.external_id: row.document_id for row in self._connection.execute(rows)}
        insert_rows(
            self._connection,
            texts,
            ["document_id", "text"],
            [(numbers[one.id], one.text) for one in new],
            key="document_id",
        )
        count_kinds(self._connection, ids)
        return numbers

    def _put_passages(
        self, new: Sequence[NewDocument], owners: Mapping[str, int], text_vectors: TextVectors
    ) -> None:
        """Replace the passages of documents, whose numbers are in `owners`."""
        owned = values(owners[one.id] for one in new)
        remove_words(self._connection, documents.c.document_id.in_(owned))
        old = delete(passages).where(passages.c.document_id.in_(owned))
        count_deleted(self._connection, self._connection.execute(old).rowcount)
        first = 1 + self._connection.execute(_LAST_PASSAGE_ID).scalar_one()
        analyser = Analyser(read_settings(self._connection).language)
        added = [(owners[one.id], passage) for one in new for passage in one.passages or ()]
        rows = [
            (passage_id, owner, *passage, analysed_text(passage.text, analyser))
            for passage_id, (owner, passage) in enumerate(added, first)
        ]
        names = ["passage_id", "document_id", "start", "end", "text", "text_hash", "analysed"]
        insert_rows(self._connection, passages, names, rows)
        add_words(self._connection, passages.c.passage_id >= first)
        for space in all_spaces(self._connection) if added else []:
            matrix = numpy.array([text_vectors[space.id, each.text_hash] for _, each in added])
            self._put_vectors(space, range(first, first + len(added)), matrix)

    def _put_vectors(self, space: Space, passage_ids: Sequence[int], matrix: Matrix) -> None:
        stored = zip(passage_ids, to_bytes(matrix), strict=True)
        rows = [(passage_id, space.id, vector) for passage_id, vector in stored]
        insert_rows(self._connection, vectors, ["passage_id", "space_id", "vector"], rows)


def _database_faults(connection: Connection) -> Iterator[Fault]:
    for line in connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars():
        if line != "ok":
            # Indexes and FTS5's tables can be rebuilt.
            derived = any(mark in line.lower() for mark in ("index", "fts5"))
            yield Fault(f"SQLite finds: {' '.join(line.split())}", repairable=derived)
    try:
        # Rank 1 also compares with the passages.
        connection.exec_driver_sql(
            "INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)"
        )
    except DatabaseError:
        yield Fault("the words for BM25 do not match the passages")


def _content_faults(connection: Connection) -> Iterator[Fault]:
    whole = select(texts.c.text, documents.c.text_hash).join(documents)
    changed = sum(text_hash(text) != digest for text, digest in connection.execute(whole))
    if changed:
        yield Fault(f"{quantity(changed, 'document')} not as written", repairable=False)
    slices = (
        select(passages, texts.c.text.label("whole"))
        .join(texts, texts.c.document_id == passages.c.document_id)
        .order_by(passages.c.document_id)
    )
    changed = sum(
        row.whole[row.start : row.end] != row.text or text_hash(row.text) != row.text_hash
        for row in connection.execute(slices)
    )
    if changed:
        yield Fault(f"{quantity(changed, 'passage')} not as written", repairable=False)


def _vector_faults(connection: Connection, directory: Path, space: Space) -> Iterator[Fault]:
    if missing := _lacking(connection, space):
        yield Fault(f"space '{space.name}' lacks the vectors of {quantity(missing, 'passage')}")
        return
    record = snapshot_record(connection, space)
    if record is None or not record.bytes:
        return
    name = snapshot_name(space.name, record.generation)
    snapshot = open_snapshot(directory, space, record)
    if snapshot is None:
        yield Fault(f"{name} is missing or damaged")
        return
    for ids, matrix in vector_blocks(connection, space):
        covered = ids <= record.last_passage_id
        is_equal = numpy.isin(ids[covered], snapshot.ids).all()
        if not is_equal or (snapshot.vectors(ids[covered]) != matrix[covered]).any():
            yield Fault(f"{name} does not match the vectors of the database")
            return


def _sound(space: Space) -> ColumnElement[bool]:
    """The condition for vectors of a space that have its size."""
    has_size = func.length(vectors.c.vector) == space.dimension * STORED.itemsize
    return (vectors.c.space_id == space.id) & has_size


def _lacking(connection: Connection, space: Space) -> int:
    """The number of passages without a vector."""
    sound = select(vectors.c.passage_id).where(_sound(space))
    lacking = select(func.count()).where(passages.c.passage_id.not_in(sound))
    return connection.execute(lacking).scalar_one()
