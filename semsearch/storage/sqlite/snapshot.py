"""Snapshots: the vectors of a space in a file that is searched without reading SQLite.

A snapshot is derived from SQLite and replaced whole; it can be deleted at any time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, select

from semsearch.errors import IndexStoreError
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.schema import get_setting, put_setting, snapshots
from semsearch.vector_indexes import IVF

if TYPE_CHECKING:
    from semsearch.vector_indexes.flat import VectorIndex


#: The setting with the number of passages ever deleted.
DELETED = "deleted"


class SnapshotRecord(NamedTuple):
    """The record of a snapshot in SQLite, by which its file is recognised."""

    space_id: int
    generation: int
    bytes: int
    vectors: int
    last_passage_id: int  # it has the vectors of all passages up to this id
    deleted: int  # how many passages had been deleted before it was written
    kind: str
    recall: float  # recall@10 against exact search; 1 for an exact kind


class UnusableSnapshotError(Exception):
    """The file of a snapshot is missing or damaged; the message is a sentence about it."""


def snapshot_record(connection: Connection, space: Space) -> SnapshotRecord | None:
    """The database's record of a space's snapshot, if it has one."""
    row = connection.execute(select(snapshots).where(snapshots.c.space_id == space.id)).first()
    return SnapshotRecord(**row._mapping) if row else None


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


def index_class(kind: str) -> type[VectorIndex]:
    """The class of a kind of vector index; imports FAISS."""
    if kind == IVF:
        from semsearch.vector_indexes.ivf import IvfIndex

        return IvfIndex
    from semsearch.vector_indexes.flat import VectorIndex

    return VectorIndex


def open_snapshot(directory: Path, space: Space, record: SnapshotRecord) -> VectorIndex:
    """Open a recorded snapshot, memory-mapped.

    Raises:
        UnusableSnapshotError: its file is missing or damaged.
    """
    file = directory / snapshot_name(space.name, record.generation)
    try:
        if file.stat().st_size == record.bytes:
            index = index_class(record.kind).open(file)
            if len(index) == record.vectors:
                return index
    except FileNotFoundError:
        raise UnusableSnapshotError(f"{file} is missing") from None
    except (OSError, RuntimeError, MemoryError) as error:  # FAISS raises the latter two
        raise UnusableSnapshotError(f"{file} cannot be read") from error
    raise UnusableSnapshotError(f"{file} does not have the recorded size")


def save_snapshot(index: VectorIndex, file: Path) -> None:
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
        if os.name == "posix":  # Windows needs no call to make a rename durable
            descriptor = os.open(file.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise IndexStoreError(
            f"cannot write the snapshot {file} ({error.strerror}); the documents are stored in "
            "SQLite, which is searched until a snapshot can be written"
        ) from error
