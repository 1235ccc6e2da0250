"""Verification, repair and compaction of an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy
from sqlalchemy import ColumnElement, Connection, delete, func, select, update
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
    texts,
    vectors,
)
from semsearch.storage.sqlite.snapshots import (
    open_snapshot,
    refresh,
    remove_leftovers,
    snapshot_name,
    snapshot_record,
)
from semsearch.storage.sqlite.spaces import all_spaces, vector_blocks, vector_bytes


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
    has_size = func.length(vectors.c.vector) == vector_bytes(space)
    return (vectors.c.space_id == space.id) & has_size


def _lacking(connection: Connection, space: Space) -> int:
    """The number of passages without a vector."""
    sound = select(vectors.c.passage_id).where(_sound(space))
    lacking = select(func.count()).where(passages.c.passage_id.not_in(sound))
    return connection.execute(lacking).scalar_one()


def rebuild(connection: Connection) -> None:
    """Rebuild SQLite's indexes, the words for BM25 and the records of fields; give up snapshots.

    Spaces that lack vectors are incomplete until these are encoded: searching them raises instead
    of missing passages.
    """
    with connection.begin():
        connection.exec_driver_sql("REINDEX")
        rebuild_kinds(connection)
        rebuild_words(connection)
        # No file has this size. The next snapshot has another generation, also for open readers.
        connection.execute(update(snapshots).values(bytes=0))
        for space in all_spaces(connection):
            if _lacking(connection, space):
                of_space = vectors.c.space_id == space.id
                connection.execute(delete(vectors).where(of_space, ~_sound(space)))
                incomplete = update(spaces).where(spaces.c.space_id == space.id)
                connection.execute(incomplete.values(complete=0))
        next_revision(connection)


def compact(connection: Connection, directory: Path, spaces: Iterable[Space]) -> None:
    """Rewrite all files of an index without deleted data.

    SQLite overwrites freed space with zeros (`secure_delete`), but BM25 keeps deleted words until
    it is rebuilt, files do not shrink, and snapshots keep deleted vectors. The index can be read
    meanwhile, and killing the process does no harm.

    Raises:
        IndexBusyError: a reader uses an older state, so deleted data is still in the log.
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
    remove_leftovers(connection, directory, keep_previous=False)
    raw: Any = connection.connection.driver_connection  # they cannot run in a transaction
    raw.execute("VACUUM")
    busy = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise IndexBusyError(
            f"{directory} is being read, by this process or another, so its log still holds "
            "deleted data; run semsearch compact again without readers"
        )
