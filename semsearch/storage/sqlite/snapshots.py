"""Snapshots: the vectors of a space in a file that is searched without reading SQLite.

A snapshot is derived from SQLite and replaced whole; it can be deleted at any time.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from semsearch.errors import IndexStoreError
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.schema import (
    get_setting,
    next_revision,
    put_setting,
    read_settings,
    snapshots,
    spaces,
    vectors,
)
from semsearch.storage.sqlite.spaces import vector_blocks
from semsearch.vector_indexes import FLAT, IVF, chosen_kind

if TYPE_CHECKING:
    from semsearch.vector_indexes.flat import VectorIndex

logger = logging.getLogger(__name__)

#: The setting with the number of passages ever deleted.
DELETED = "deleted"

#: A snapshot is rewritten when recent and deleted vectors exceed this share of it.
STALE_SHARE = 0.1

#: A recall is measured with other queries than those used for tuning, so it varies by this much.
RECALL_TOLERANCE = 0.005


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
            "the vector index of space '%s' has a measured recall of %.3f, below the %s of "
            "--recall (for exact search: semsearch configure --index-type flat)",
            space.name,
            recall,
            wanted.recall,
        )
    with connection.begin():
        connection.execute(delete(snapshots).where(snapshots.c.space_id == space.id))
        connection.execute(insert(snapshots).values(new))
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
