"""Refreshing: write a new snapshot of a space from the vectors in SQLite, if worthwhile."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select

from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.schema import (
    next_revision,
    read_settings,
    snapshots,
    spaces,
    vectors,
)
from semsearch.storage.sqlite.snapshot import (
    SnapshotRecord,
    UnusableSnapshotError,
    deleted_passages,
    index_class,
    open_snapshot,
    save_snapshot,
    snapshot_name,
    snapshot_record,
)
from semsearch.storage.sqlite.spaces import vector_blocks
from semsearch.vector_indexes import FLAT, chosen_kind

logger = logging.getLogger(__name__)

#: A snapshot is rewritten when recent and deleted vectors exceed this share of it.
STALE_SHARE = 0.1

#: A recall is measured with other queries than those used for tuning, so it varies by this much.
RECALL_TOLERANCE = 0.005


def refresh(
    connection: Connection,
    directory: Path,
    space: Space,
    *,
    thoroughly: bool = False,
    rewrite: bool = False,
    loading: bool = False,
) -> None:
    """Write a new snapshot of a space if the present one is missing, damaged or out of date.

    The file is complete before a transaction records it. The previous snapshot is kept for readers
    that are about to open it; older files are deleted.

    Args:
        connection: its transactions begin with the write lock.
        directory: the directory of the snapshot.
        space: the space.
        thoroughly: write one after any change.
        rewrite: write one in any case.
        loading: more passages will follow soon; write a flat index, which is fast.
    """
    with connection.begin():
        record = snapshot_record(connection, space)
        wanted = read_settings(connection).index_type
        if record and not rewrite and _is_usable(directory, space, record):
            recent = _count(connection, space, record.last_passage_id)
            deleted = deleted_passages(connection) - record.deleted
            kind = chosen_kind(wanted, record.vectors + recent - deleted, space.dimension)
            share = 0 if thoroughly else STALE_SHARE
            if recent + deleted <= share * record.vectors and (loading or record.kind == kind):
                return
        total = _count(connection, space)
        if record is None and not total:
            return
        kind = FLAT if loading else chosen_kind(wanted, total, space.dimension)
        blocks = vector_blocks(connection, space)
        index = index_class(kind).build(space.dimension, total, blocks, wanted.recall)
        generation = record.generation + 1 if record else 1
        file = directory / snapshot_name(space.name, generation)
        save_snapshot(index, file)
        new = SnapshotRecord(
            space_id=space.id,
            generation=generation,
            bytes=file.stat().st_size,
            vectors=total,
            last_passage_id=int(index.ids[-1]) if total else 0,
            deleted=deleted_passages(connection),
            kind=kind,
            recall=index.measured_recall(),
        )
    _warn_of_low_recall(space, new.recall, wanted.recall)
    with connection.begin():
        connection.execute(delete(snapshots).where(snapshots.c.space_id == space.id))
        connection.execute(insert(snapshots).values(new._asdict()))
        next_revision(connection)
    remove_leftovers(connection, directory, keep_previous=True)


def _warn_of_low_recall(space: Space, measured: float, wanted: float) -> None:
    if measured + RECALL_TOLERANCE < wanted:
        logger.warning(
            "the vector index of space '%s' has a measured recall of %.3f, below the %s of "
            "--recall (for exact search: semsearch configure --index-type flat)",
            space.name,
            measured,
            wanted,
        )


def _is_usable(directory: Path, space: Space, record: SnapshotRecord) -> bool:
    try:
        open_snapshot(directory, space, record)
    except UnusableSnapshotError:
        return False
    return True


def _count(connection: Connection, space: Space, after: int = 0) -> int:
    """The number of vectors of passages above an id."""
    is_counted = (vectors.c.space_id == space.id) & (vectors.c.passage_id > after)
    return connection.execute(select(func.count()).where(is_counted)).scalar_one()


def leftovers(connection: Connection, directory: Path, *, keep_previous: bool = True) -> list[Path]:
    """Unneeded files: older snapshots, drafts of killed runs, and maps of dropped spaces.

    Args:
        connection: its transactions begin with the write lock.
        directory: the directory of the files.
        keep_previous: keep the previous snapshot, which a reader may be about to open.
    """
    with connection.begin():
        names = connection.scalars(select(spaces.c.name)).all()
        records = connection.execute(
            select(spaces.c.name, snapshots.c.generation).join_from(spaces, snapshots)
        ).all()
    kept = {f"{name}.map" for name in names}
    for name, generation in records:
        kept |= {snapshot_name(name, generation), snapshot_name(name, generation - keep_previous)}
    found = [*directory.glob("*.faiss"), *directory.glob("*.faiss.tmp"), *directory.glob("*.map")]
    return sorted(file for file in found if file.name not in kept)


def remove_leftovers(connection: Connection, directory: Path, *, keep_previous: bool) -> None:
    """Delete unneeded files; see `leftovers`."""
    for file in leftovers(connection, directory, keep_previous=keep_previous):
        with suppress(PermissionError):  # on Windows, while a reader maps it: the next writer's
            file.unlink(missing_ok=True)
