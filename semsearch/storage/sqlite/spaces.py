"""Embedding spaces of a local store: their rows, their vectors, and snapshots of these.

A snapshot holds the vectors of a space in a file that is searched without reading SQLite. It is
derived from SQLite and replaced whole; it can be deleted at any time.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from sqlalchemy import Connection, Row, func, insert, select

from semsearch.errors import IndexStoreError
from semsearch.protocols import Encoder, Matrix
from semsearch.storage.spaces import Space, described_space
from semsearch.storage.sqlite.schema import (
    get_setting,
    next_revision,
    put_setting,
    read_settings,
    snapshots,
    spaces,
    vectors,
)
from semsearch.vector_indexes import FLAT, IVF, Ids, chosen_kind

if TYPE_CHECKING:
    from semsearch.vector_indexes.flat import VectorIndex

logger = logging.getLogger(__name__)

#: Vectors read from the database at once.
BLOCK_ROWS = 8192

#: The setting with the number of passages ever deleted.
DELETED = "deleted"

#: A snapshot is rewritten when recent and deleted vectors exceed this share of it.
STALE_SHARE = 0.1

#: A recall is measured with other queries than those used for tuning, so it varies by this much.
RECALL_TOLERANCE = 0.005

#: The type of stored numbers.
STORED = numpy.dtype("<f4")

_VECTORS = """
SELECT passage_id, vector FROM vectors WHERE space_id = ? AND passage_id > ? ORDER BY passage_id
"""


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of a store, oldest first."""
    rows = connection.execute(select(spaces).order_by(spaces.c.space_id))
    return [
        Space._make([*record, bool(complete), json.loads(description)])
        for *record, complete, description in rows
    ]


def insert_space(connection: Connection, encoder: Encoder, *, complete: bool) -> Space:
    """Add a space for an encoder's vectors, named after its spec."""
    new = described_space(encoder, all_spaces(connection), complete=complete)
    row = new._asdict() | {"complete": int(complete), "description": json.dumps(new.description)}
    del row["id"]  # SQLite's, which is never used again
    connection.execute(insert(spaces).values(row))
    return next(space for space in all_spaces(connection) if space.name == new.name)


def to_bytes(matrix: Matrix) -> list[bytes]:
    """Vectors as stored in SQLite."""
    return [row.tobytes() for row in matrix.astype(STORED)]


def from_bytes(space: Space, rows: Sequence[bytes]) -> Matrix:
    """Stored vectors as a matrix, shape (len(rows), dimension)."""
    numbers = numpy.frombuffer(b"".join(rows), STORED)
    return numbers.reshape(len(rows), space.dimension).astype(numpy.float32)


def vector_blocks(
    connection: Connection, space: Space, after: int = 0
) -> Iterator[tuple[Ids, Matrix]]:
    """Blocks of ids and vectors of the passages above an id, in ascending order of ids."""
    result = connection.exec_driver_sql(_VECTORS, (space.id, after))
    for rows in result.partitions(BLOCK_ROWS):
        ids, stored = zip(*rows, strict=True)
        yield numpy.array(ids, numpy.int64), from_bytes(space, stored)


def snapshot_record(connection: Connection, space: Space) -> Row[Any] | None:
    """The row of a space's snapshot, by which its file is recognised, if it has one."""
    return connection.execute(select(snapshots).where(snapshots.c.space_id == space.id)).first()


def snapshot_name(space_name: str, generation: int) -> str:
    """The file name of a snapshot."""
    return f"{space_name}-{generation}.faiss"


def deleted_passages(connection: Connection) -> int:
    """The number of passages ever deleted."""
    return int(get_setting(connection, DELETED, 0))


def count_deleted(connection: Connection, passages: int) -> None:
    """Record the number of deleted passages, as counting the remaining ones takes long."""
    if passages:
        put_setting(connection, DELETED, deleted_passages(connection) + passages)


def open_snapshot(directory: Path, space: Space, record: Row[Any]) -> VectorIndex | None:
    """Open a recorded snapshot, memory-mapped; None if its file is missing or damaged."""
    file = directory / snapshot_name(space.name, record.generation)
    with suppress(OSError, RuntimeError, MemoryError):  # FAISS raises the latter two
        if file.stat().st_size == record.bytes:
            index = _index_class(record.kind).open(file)
            if len(index) == record.vectors:
                return index
    return None


def refresh(
    connection: Connection, directory: Path, space: Space, *, thoroughly: bool = False
) -> None:
    """Write a new snapshot of a space if the present one is missing, damaged or out of date.

    The file is complete before a transaction records it. The previous snapshot is kept for readers
    that are about to open it; older files are deleted. `thoroughly` writes one after any change.
    """
    with connection.begin():
        record = snapshot_record(connection, space)
        wanted = read_settings(connection).index_type
        deleted = deleted_passages(connection)
        if record and open_snapshot(directory, space, record) is not None:
            recent = _count(connection, space, record.last_passage_id)
            gone = deleted - record.deleted
            kind = chosen_kind(wanted, record.vectors + recent - gone, space.dimension)
            is_exact = kind == FLAT
            is_wanted = kind == record.kind and (is_exact or wanted.recall == record.wanted_recall)
            share = 0 if thoroughly else STALE_SHARE
            if is_wanted and recent + gone <= share * record.vectors:
                return
        total = _count(connection, space, 0)
        if record is None and not total:
            return
        kind = chosen_kind(wanted, total, space.dimension)
        blocks = vector_blocks(connection, space)
        index = _index_class(kind).build(space.dimension, total, blocks, wanted.recall)
        generation = record.generation + 1 if record else 1
        file = directory / snapshot_name(space.name, generation)
        _save(index, file)
        recall = index.measured_recall()
        new = {
            "space_id": space.id,
            "generation": generation,
            "bytes": file.stat().st_size,
            "vectors": total,
            "last_passage_id": int(index.ids[-1]) if total else 0,
            "deleted": deleted,
            "kind": kind,
            "wanted_recall": wanted.recall,
            "recall": recall,
        }
    if recall + RECALL_TOLERANCE < wanted.recall:
        logger.warning(
            "space '%s': recall %.3f, below %s; for exact search: configure --index-type flat",
            space.name,
            recall,
            wanted.recall,
        )
    with connection.begin():
        connection.execute(insert(snapshots).prefix_with("OR REPLACE").values(new))
        next_revision(connection)
    remove_leftovers(connection, directory, keep_previous=True)


def remove_leftovers(connection: Connection, directory: Path, *, keep_previous: bool) -> None:
    """Delete older snapshots, drafts of killed runs, and maps of dropped spaces.

    A reader may be about to open the previous snapshot.
    """
    with connection.begin():
        names = connection.scalars(select(spaces.c.name)).all()
        records = connection.execute(
            select(spaces.c.name, snapshots.c.generation).join_from(spaces, snapshots)
        ).all()
    kept = {f"{name}.map" for name in names}
    for name, generation in records:
        kept |= {snapshot_name(name, generation), snapshot_name(name, generation - keep_previous)}
    for pattern in ("*.faiss", "*.faiss.tmp", "*.map"):
        for file in directory.glob(pattern):
            if file.name not in kept:
                with suppress(PermissionError):  # on Windows, while a reader maps it
                    file.unlink(missing_ok=True)


def _index_class(kind: str) -> type[VectorIndex]:
    """The class of a kind of vector index; imports FAISS."""
    if kind == IVF:
        from semsearch.vector_indexes.ivf import IvfIndex

        return IvfIndex
    from semsearch.vector_indexes.flat import VectorIndex

    return VectorIndex


def _count(connection: Connection, space: Space, after: int) -> int:
    """The number of vectors of passages above an id."""
    is_counted = (vectors.c.space_id == space.id) & (vectors.c.passage_id > after)
    return connection.execute(select(func.count()).where(is_counted)).scalar_one()


def _save(index: VectorIndex, file: Path) -> None:
    """Write a snapshot whole or not at all: it gets its name when it is on the disk.

    Raises:
        IndexStoreError: it cannot be written.
    """
    draft = file.with_suffix(".faiss.tmp")
    try:
        index.save(draft)
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise IndexStoreError(
            f"cannot write the snapshot {file} ({error.strerror}); the documents are stored in "
            "SQLite, which is searched until a snapshot can be written"
        ) from error
