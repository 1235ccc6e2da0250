"""Verification, repair and compaction of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy
from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import DatabaseError

from semsearch.errors import IndexBusyError, quantity
from semsearch.storage.interface import Fault, text_hash
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.bm25 import rebuild_words
from semsearch.storage.sqlite.fields import rebuild_kinds
from semsearch.storage.sqlite.schema import (
    documents,
    next_revision,
    passages,
    snapshots,
    spaces,
    tables,
    texts,
    values,
    vectors,
)
from semsearch.storage.sqlite.snapshots import (
    RECALL_TOLERANCE,
    SnapshotRecord,
    UnusableSnapshotError,
    open_snapshot,
    refresh,
    remove_leftovers,
    snapshot_name,
    snapshot_record,
)
from semsearch.storage.sqlite.spaces import all_spaces, damaged, vector_blocks
from semsearch.vector_indexes.flat import VectorIndex

ROWS_AT_ONCE = 4096

#: Messages of PRAGMA integrity_check about indexes and FTS5's tables, which can be rebuilt.
_DERIVED = ("missing from index", "wrong # of entries in index", "non-unique entry", "fts5", "FTS5")


def find_faults(connection: Connection, directory: Path) -> list[Fault]:
    """Check an index and return all faults.

    Args:
        connection: its transactions begin with the write lock, which checking BM25 needs.
        directory: the directory of the snapshots.
    """
    with connection.begin() as transaction:
        try:
            found = list(_database_faults(connection))
            if all(fault.repairable for fault in found):
                found += _content_faults(connection)
                for space in all_spaces(connection):
                    found += _vector_faults(connection, directory, space)
        except DatabaseError as error:
            return [Fault(f"the database is damaged ({error.orig})", repairable=False)]
        finally:
            transaction.rollback()  # FTS5 cannot commit the check of damaged tables
    return found


def bad_vectors(connection: Connection, space: Space) -> Iterator[int]:
    """The passages of a space whose vector is damaged: of the wrong size, or not of unit length."""
    query = select(vectors.c.passage_id, vectors.c.vector).where(vectors.c.space_id == space.id)
    for rows in connection.execute(query).partitions(ROWS_AT_ONCE):
        yield from (
            rows[place].passage_id for place in damaged(space, [row.vector for row in rows])
        )


def _database_faults(connection: Connection) -> Iterator[Fault]:
    for line in connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars():
        if line != "ok":
            derived = any(mark in line for mark in _DERIVED)
            yield Fault(f"SQLite finds: {' '.join(line.split())}", repairable=derived)
    try:
        # Rank 1 also compares with the passages.
        connection.exec_driver_sql(
            "INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)"
        )
    except DatabaseError:
        yield Fault("the words for BM25 do not match the passages")


def _content_faults(connection: Connection) -> Iterator[Fault]:
    query = select(texts.c.text, documents.c.text_hash).join(documents)
    changed = sum(text_hash(row.text) != row.text_hash for row in connection.execute(query))
    if changed:
        yield Fault(f"{quantity(changed, 'document')} not as written", repairable=False)
    whole = (
        select(passages, texts.c.text.label("whole"))
        .join(texts, texts.c.document_id == passages.c.document_id)
        .order_by(passages.c.document_id)
    )
    changed = sum(
        row.whole[row.start : row.end] != row.text or text_hash(row.text) != row.text_hash
        for row in connection.execute(whole)
    )
    if changed:
        yield Fault(f"{quantity(changed, 'passage')} not as written", repairable=False)


def _vector_faults(connection: Connection, directory: Path, space: Space) -> Iterator[Fault]:
    if missing := _lacking(connection, space):
        yield Fault(f"space '{space.name}' lacks the vectors of {quantity(missing, 'passage')}")
    bad = sum(1 for _ in bad_vectors(connection, space))
    if bad:
        yield Fault(f"space '{space.name}' has {quantity(bad, 'damaged vector')}")
    record = snapshot_record(connection, space)
    if record is None or not record.bytes:
        return
    try:
        snapshot = open_snapshot(directory, space, record)
    except UnusableSnapshotError as error:
        yield Fault(str(error))
        return
    if not bad and not _matches(connection, space, record, snapshot):
        name = snapshot_name(space.name, record.generation)
        yield Fault(f"{name} does not match the vectors of the database")


def _matches(
    connection: Connection, space: Space, record: SnapshotRecord, snapshot: VectorIndex
) -> bool:
    """Whether a snapshot has the vectors of the database, and its recall."""
    for ids, matrix in vector_blocks(connection, space):
        covered = ids <= record.last_passage_id
        if not numpy.isin(ids[covered], snapshot.ids, assume_unique=True).all():
            return False
        if (snapshot.vectors(ids[covered]) != matrix[covered]).any():
            return False
    return snapshot.measured_recall() + RECALL_TOLERANCE >= record.recall


def rebuild(connection: Connection) -> None:
    """Rebuild SQLite's indexes, the words for BM25 and the records of fields."""
    with connection.begin():
        for name in tables.tables:  # not FTS5's
            connection.exec_driver_sql(f'REINDEX "{name}"')
        rebuild_kinds(connection)
        rebuild_words(connection)
        next_revision(connection)


def discard_bad_vectors(connection: Connection, space: Space) -> None:
    """Delete the damaged vectors of a space, and give up its snapshot.

    If some passages lack a vector then, the space is incomplete until these are encoded: searching
    it raises instead of missing passages.
    """
    with connection.begin():
        of_space = vectors.c.space_id == space.id
        bad = vectors.c.passage_id.in_(values(bad_vectors(connection, space)))
        connection.execute(delete(vectors).where(of_space, bad))
        # No file has this size. The next snapshot has another generation, also for open readers.
        unusable = update(snapshots).where(snapshots.c.space_id == space.id).values(bytes=0)
        connection.execute(unusable)
        if _lacking(connection, space):
            incomplete = update(spaces).where(spaces.c.space_id == space.id).values(complete=0)
            connection.execute(incomplete)
        next_revision(connection)


def _lacking(connection: Connection, space: Space) -> int:
    """The number of passages without a vector."""
    of_space = select(vectors.c.passage_id).where(vectors.c.space_id == space.id)
    lacking = select(func.count()).where(passages.c.passage_id.not_in(of_space))
    return connection.execute(lacking).scalar_one()


def compact(connection: Connection, directory: Path, spaces: Iterable[Space]) -> None:
    """Rewrite all files of an index without deleted data.

    SQLite overwrites freed space with zeros (`secure_delete`), but BM25 keeps deleted words until
    it is rebuilt, files do not shrink, and snapshots keep deleted vectors. The index can be read
    meanwhile, and killing the process does no harm.

    Raises:
        IndexBusyError: a reader uses an older state; deleted data is still in the log, or in a
            snapshot that cannot be deleted.
    """
    for space in spaces:
        if space.complete:
            refresh(connection, directory, space, thoroughly=True)
        else:  # vectors filled in later would be neither in its snapshot nor among the recent ones
            with connection.begin():
                connection.execute(delete(snapshots).where(snapshots.c.space_id == space.id))
    with connection.begin():
        rebuild_kinds(connection)
        rebuild_words(connection)
    left = remove_leftovers(connection, directory, keep_previous=False)
    raw: Any = connection.connection.driver_connection  # they cannot run in a transaction
    raw.execute("VACUUM")
    busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if left or busy:
        raise IndexBusyError(
            f"{directory} is being read, by this process or another, so its log or an old snapshot "
            "still holds deleted data; run semsearch compact again without readers"
        )
