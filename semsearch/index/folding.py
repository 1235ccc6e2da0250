"""Folding: a space's vectors from SQLite into a FAISS snapshot, when that is worth it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert

from semsearch.index.schema import snapshots, vectors
from semsearch.index.snapshot import snapshot_fault, write_snapshot
from semsearch.index.spaces import Space
from semsearch.index.view import read_vectors, snapshot_record

__all__ = ["fold"]

#: A snapshot is written anew when more than this part of it was deleted or stands in the tail.
STALE_SHARE = 0.1


def fold(connection: Connection, directory: Path, space: Space) -> bool:
    """Write a new snapshot of a space if it has none, a damaged one, or too old a one.

    The file is complete before a transaction names it. The snapshot before it is left for those
    who are about to open it; older files go.

    Returns:
        Whether one was written.
    """
    with connection.begin():
        if not _is_due(connection, directory, space):
            return False
        record = snapshot_record(connection, space)
        ids, matrix = read_vectors(connection, space)
    generation = record.generation + 1 if record else 1
    new = write_snapshot(directory, space.name, space.id, generation, ids, matrix)
    with connection.begin():
        row = new._asdict()
        connection.execute(
            insert(snapshots)
            .values(row)
            .on_conflict_do_update(index_elements=["space_id"], set_=row)
        )
    kept = {new.file, record.file if record else new.file}
    for file in directory.glob(f"{space.name}-*.faiss*"):
        number = file.name.removeprefix(f"{space.name}-").partition(".")[0]
        if number.isdigit() and file.name not in kept:
            file.unlink(missing_ok=True)
    return True


def _is_due(connection: Connection, directory: Path, space: Space) -> bool:
    count = select(func.count()).where(vectors.c.space_id == space.id)
    total = connection.scalar(count) or 0
    record = snapshot_record(connection, space)
    if record is None:
        return total > 0
    if snapshot_fault(directory / record.file, record):
        return True
    tail = connection.scalar(count.where(vectors.c.chunk_id > record.last_chunk_id)) or 0
    deleted = record.vectors - (total - tail)
    return tail + deleted > STALE_SHARE * record.vectors
