"""FAISS snapshots: vectors of one space in a file that is searched without reading SQLite.

A snapshot is derived: it can be lost at any time. It is handed to FAISS only when its SHA-256 is
the one that SQLite recorded.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from semsearch.encoders.cache import stream_sha256
from semsearch.errors import IndexStoreError
from semsearch.stores.protocol import Space
from semsearch.vector_indexes import FLAT, IndexType, index_class
from semsearch.vector_indexes.flat import Blocks, VectorIndex

logger = logging.getLogger(__name__)

HEADER_BYTES = 64

_FILE_NAME = re.compile(r"[a-z0-9_-]+\.faiss")


class SnapshotRecord(NamedTuple):
    """What SQLite knows of a snapshot file."""

    space_id: int
    generation: int
    file: str
    bytes: int
    sha256: str
    vectors: int
    last_chunk_id: int
    kind: str
    recall: float  # of the 10 nearest, against exact search; 1 for an exact kind


class Snapshot:
    """A vector index in a file that is mapped into memory.

    Args:
        index: of chunk ids.
        file: where it was read from.
    """

    def __init__(self, index: VectorIndex, file: Path) -> None:
        self.index = index
        self._file = file
        self._state = _file_state(file)

    def is_intact(self) -> bool:
        """Whether the file is as it was when it was opened."""
        return _file_state(self._file) == self._state


def snapshot_name(space_name: str, generation: int) -> str:
    """What the file of a snapshot is called."""
    return f"{space_name}-{generation}.faiss"


def write_snapshot(
    directory: Path,
    space: Space,
    generation: int,
    count: int,
    blocks: Callable[[], Blocks],
    kind: str = FLAT,
    recall: float = IndexType().recall,
) -> SnapshotRecord:
    """Write a snapshot beside the database: whole under its name, or not there at all.

    Args:
        directory: where it goes.
        space: of which space.
        generation: the number of the snapshot.
        count: how many vectors there are.
        blocks: gives chunk ids, ascending, and their vectors, as often as it is called.
        kind: of vector index; see `semsearch.vector_indexes`.
        recall: what an approximate one is tuned to find, of the 10 nearest.

    Raises:
        IndexStoreError: it cannot be written.
    """
    from semsearch.vector_indexes.refined import measured_recall  # searching does without it

    build = index_class(kind)
    if build is None:
        raise IndexStoreError(f"no index type {kind!r}")
    try:
        index = build.build(kind, space.dimension, count, blocks, recall)
    except RuntimeError as error:  # of FAISS, which cannot build it from these vectors
        reason = str(error).strip().rpartition("\n")[2]
        raise IndexStoreError(f"cannot build a vector index of type {kind!r} ({reason})") from error
    file = directory / snapshot_name(space.name, generation)
    draft = file.with_suffix(".faiss.tmp")
    try:
        draft.unlink(missing_ok=True)  # were it a link, FAISS would write where it leads
        index.save(draft)
        with draft.open("rb+") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        size = draft.stat().st_size
        draft.replace(file)
        _sync_directory(directory)
    except (OSError, RuntimeError) as error:  # FAISS knows the latter only
        draft.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or str(error).strip().rpartition("\n")[2]
        raise IndexStoreError(
            f"cannot write the snapshot {file} ({reason}); the documents are safe in SQLite, "
            "and are searched there until a snapshot can be written"
        ) from error
    return SnapshotRecord(
        space_id=space.id,
        generation=generation,
        file=file.name,
        bytes=size,
        sha256=sha256,
        vectors=len(index),
        last_chunk_id=int(index.ids[-1]) if len(index) else 0,
        kind=kind,
        recall=measured_recall(index),
    )


def open_snapshot(directory: Path, record: SnapshotRecord) -> Snapshot | None:
    """The snapshot of that record; None, with a message, when its file is not what it was.

    Raises:
        FileNotFoundError: it is lost or, more likely, a newer one has taken its place.
    """
    file = directory / record.file
    try:
        with _open(directory, record) as stream:
            fault = _fault(stream, record)
            if fault is None:
                # By its descriptor: under its name there could be, by now, no file, or another.
                name = f"/dev/fd/{stream.fileno()}" if os.name == "posix" else str(file)
                snapshot = Snapshot(_class(record).open(name), file)
                if len(snapshot.index) == record.vectors:
                    return snapshot
                fault = "holds another number of vectors than recorded"
    except FileNotFoundError:
        raise
    except ValueError as error:
        fault = str(error)
    except (OSError, RuntimeError, MemoryError) as error:  # FAISS raises the latter two
        fault = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    warn_of_fault(file, fault)
    return None


def warn_of_fault(file: Path, fault: str) -> None:
    """Say that a snapshot cannot be used, and what is done instead."""
    logger.warning(
        "%s %s; searching the vectors in SQLite instead (the next `semsearch index` rewrites it)",
        file,
        fault,
    )


def snapshot_fault(
    directory: Path, record: SnapshotRecord, *, thoroughly: bool = False
) -> str | None:
    """What is wrong with a snapshot's file, or None.

    Args:
        directory: where it is.
        record: what it has to be.
        thoroughly: whether to read a file again whose hash is remembered.
    """
    try:
        with _open(directory, record) as stream:
            return _fault(stream, record, thoroughly=thoroughly)
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _open(directory: Path, record: SnapshotRecord) -> BufferedReader:
    """The file of a record; in the directory, whatever somebody may have put into the record."""
    if not _FILE_NAME.fullmatch(record.file):
        raise OSError(errno.EINVAL, "it is not the name of a snapshot")
    return (directory / record.file).open("rb")


def _class(record: SnapshotRecord) -> type[VectorIndex]:
    found = index_class(record.kind)
    if found is None:
        kind = record.kind[:40]
        raise ValueError(f"is of a kind that this version of semsearch does not know ({kind!r})")
    return found


def _fault(
    stream: BufferedReader, record: SnapshotRecord, *, thoroughly: bool = False
) -> str | None:
    if index_class(record.kind) is None:
        return f"is of a kind that this version of semsearch does not know ({record.kind[:40]!r})"
    if os.fstat(stream.fileno()).st_size != record.bytes:
        return "has another size than it was written with"
    digest = (
        hashlib.file_digest(stream, "sha256").hexdigest() if thoroughly else stream_sha256(stream)
    )
    if digest != record.sha256:
        return "is damaged (its SHA-256 is not the recorded one)"
    stream.seek(0)
    if not _class(record).is_header(stream.read(HEADER_BYTES)):
        return f"is not a {record.kind} index of inner products"
    return None


def _file_state(file: Path) -> tuple[int, int, int] | None:
    """Size, time of change and inode; None where there is no such file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _sync_directory(directory: Path) -> None:
    """Make a rename last; Windows has no such call and needs none."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
