"""Folding: write a new FAISS snapshot of a space from the vectors in SQLite, if worthwhile.

The tail of a space are its vectors newer than the snapshot; they are searched exactly.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert

from semsearch.stores.local.schema import (
    get_index_type,
    get_setting,
    next_revision,
    put_index_type,
    put_setting,
    snapshots,
    spaces,
    vectors,
)
from semsearch.stores.local.snapshot import (
    SnapshotRecord,
    snapshot_fault,
    snapshot_name,
    write_snapshot,
)
from semsearch.stores.local.spaces import DELETED, deleted_before, snapshot_record, vector_blocks
from semsearch.stores.protocol import Space
from semsearch.vector_indexes import FLAT, IndexType, chosen_kind, is_kind_of

logger = logging.getLogger(__name__)

#: A snapshot is rewritten when deleted vectors and the tail exceed this share of it.
STALE_SHARE = 0.1
#: The age from which the draft of a map is regarded as that of a killed process.
DRAFT_SECONDS = 3600


def fold(
    connection: Connection,
    directory: Path,
    space: Space,
    *,
    thoroughly: bool = False,
    rewrite: bool = False,
    loading: bool = False,
) -> bool:
    """Write a new snapshot of a space if the present one is missing, damaged or out of date.

    If FAISS cannot build the kind of index that was chosen, a flat one is written, with a warning.
    The file is complete before a transaction records it. The previous snapshot is kept for readers
    that are about to open it; older files are deleted.

    Args:
        connection: its transactions begin with the write lock.
        directory: the directory of the snapshot.
        space: the space.
        thoroughly: write one after any change.
        rewrite: write one in any case.
        loading: more passages will follow soon; write a flat index, which is fast.

    Returns:
        Whether a snapshot was written.
    """
    with connection.begin():
        record = snapshot_record(connection, space)
        wanted = _supported_type(connection)
        is_current = False
        if record and not rewrite and not snapshot_fault(directory, record):
            tail, gone = _stale_rows(connection, space, record)
            kind = chosen_kind(wanted, record.vectors + tail - gone, space.dimension)
            share = 0 if thoroughly else STALE_SHARE
            is_current = tail + gone <= share * record.vectors
            if is_current and (loading or is_kind_of(record.kind, kind)):
                return False
        total = _count(connection, space)
        if record is None and not total:
            return False
        kind = FLAT if loading else chosen_kind(wanted, total, space.dimension)
        if record and is_current and is_kind_of(record.kind, kind):
            return False  # `gone` includes vectors of the tail, so the estimate was too low
        generation = record.generation + 1 if record else 1
        deleted = get_setting(connection, DELETED, 0)
        blocks = partial(vector_blocks, connection, space)
        write = partial(write_snapshot, directory, space, generation, total, blocks)
        try:
            new = write(kind, wanted.recall)
        except RuntimeError as error:
            _warn_of_flat(kind, error)
            if record and record.kind == FLAT and is_current:
                return False
            new = write(FLAT)
    with connection.begin():
        row = new._asdict()
        connection.execute(
            insert(snapshots)
            .values(row)
            .on_conflict_do_update(index_elements=["space_id"], set_=row)
        )
        put_setting(connection, deleted_before(space), deleted)
        next_revision(connection)
    remove_leftovers(connection, directory, keep_previous=True)
    return True


def _supported_type(connection: Connection) -> IndexType:
    """The requested type of vector index; one that is no longer supported is changed to auto."""
    requested = get_index_type(connection)
    wanted = requested.supported()
    if wanted != requested:
        logger.warning(
            "the index type '%s' is no longer supported; using auto (to choose another type: "
            "semsearch index --index-type TYPE)",
            requested.kind,
        )
        put_index_type(connection, wanted)
    return wanted


def _warn_of_flat(kind: str, error: RuntimeError) -> None:
    """Log that FAISS cannot build a kind of index, often because there are too few vectors."""
    reason = str(error).strip().rpartition("\n")[2].rpartition("failed: ")[2]
    logger.warning(
        "cannot build a vector index of type '%s' (%s); using a flat one, which compares all "
        "vectors (to choose another type: semsearch index --index-type auto)",
        kind,
        reason,
    )


def leftovers(connection: Connection, directory: Path, *, keep_previous: bool = True) -> list[Path]:
    """Unneeded files: older snapshots, maps of dropped spaces, and drafts of killed runs.

    Maps are written without the lock, so their drafts are kept for an hour.

    Args:
        connection: its transactions begin with the write lock.
        directory: the directory of the files.
        keep_previous: keep the previous snapshot, which a reader may be about to open.
    """
    with connection.begin():
        records = connection.execute(
            select(spaces.c.name, snapshots.c.generation).join_from(spaces, snapshots)
        ).all()
        maps = {f"{name}.map" for name in connection.scalars(select(spaces.c.name))}
    kept = {snapshot_name(name, generation) for name, generation in records}
    if keep_previous:
        kept |= {snapshot_name(name, generation - 1) for name, generation in records}
    patterns = ("*.faiss", "*.faiss.tmp", "*.map", "*.map.tmp")
    found = [file for one in patterns for file in directory.glob(one) if not file.is_dir()]
    return sorted(file for file in found if file.name not in kept | maps and not _is_new(file))


def _is_new(file: Path) -> bool:
    """Whether a file is the draft of a map that a process may still be writing."""
    if not file.name.endswith(".map.tmp"):
        return False
    try:
        return time.time() - file.stat().st_mtime < DRAFT_SECONDS
    except FileNotFoundError:  # it is complete, and has its name
        return True


def remove_leftovers(connection: Connection, directory: Path, *, keep_previous: bool) -> None:
    """Delete unneeded files; see `leftovers`."""
    for file in leftovers(connection, directory, keep_previous=keep_previous):
        with suppress(PermissionError):  # on Windows, while a reader maps it: the next writer's
            file.unlink(missing_ok=True)


def _count(connection: Connection, space: Space) -> int:
    # Ids start at 1; lower ones are damage, which `vector_blocks` also leaves out.
    of_space = select(func.count()).where(vectors.c.space_id == space.id, vectors.c.chunk_id > 0)
    return connection.scalar(of_space) or 0


def count_deleted(connection: Connection, passages: int) -> None:
    """Record the number of deleted passages, as counting the remaining ones takes long."""
    if passages:
        put_setting(connection, DELETED, get_setting(connection, DELETED, 0) + passages)


def _stale_rows(connection: Connection, space: Space, record: SnapshotRecord) -> tuple[int, int]:
    """The number of vectors in the tail, and of those deleted since the snapshot was written."""
    tail = connection.scalar(
        select(func.count()).where(
            vectors.c.space_id == space.id, vectors.c.chunk_id > record.last_chunk_id
        )
    )
    deleted = get_setting(connection, DELETED, 0)
    before = get_setting(connection, deleted_before(space), -1)
    if before < 0:  # written by a version that did not count
        return tail or 0, record.vectors - (_count(connection, space) - (tail or 0))
    return tail or 0, deleted - before
