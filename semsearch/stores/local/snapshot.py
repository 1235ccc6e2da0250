"""FAISS snapshots: the vectors of a space in a file that is searched without reading SQLite.

A snapshot is derived and can be deleted at any time. FAISS reads it only if its SHA-256 is the one
recorded in SQLite.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import stat
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

#: A recall is measured with other queries than those used for tuning, so it varies by this much.
RECALL_TOLERANCE = 0.005

_FILE_NAME = re.compile(r"[a-z0-9_-]+\.faiss")


class SnapshotRecord(NamedTuple):
    """The record of a snapshot file in SQLite."""

    space_id: int
    generation: int
    file: str
    bytes: int
    sha256: str
    vectors: int
    last_chunk_id: int
    kind: str
    recall: float  # recall@10 against exact search; 1 for an exact kind


class Snapshot:
    """A vector index in a memory-mapped file.

    Args:
        index: a vector index of chunk ids.
        file: its file.
    """

    def __init__(self, index: VectorIndex, file: Path) -> None:
        self.index = index
        self._file = file
        self._state = _file_state(file)

    def is_intact(self) -> bool:
        """Whether the file is unchanged since it was opened."""
        return _file_state(self._file) == self._state


def snapshot_name(space_name: str, generation: int) -> str:
    """The file name of a snapshot."""
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
    """Write a snapshot beside the database, atomically.

    A measured recall below the wanted one is logged as a warning.

    Args:
        directory: the directory of the index.
        space: the space.
        generation: the number of the snapshot.
        count: the number of vectors.
        blocks: returns ascending chunk ids and their vectors; may be called several times.
        kind: the kind of vector index; see `semsearch.vector_indexes`.
        recall: the recall@10 for which an approximate index is tuned.

    Raises:
        RuntimeError: FAISS cannot build an index of this kind from these vectors.
        IndexStoreError: it cannot be written.
    """
    build = index_class(kind)
    if build is None:
        raise IndexStoreError(f"no index type {kind!r}")
    index = build.build(kind, space.dimension, count, blocks, recall)
    file = directory / snapshot_name(space.name, generation)
    draft = file.with_suffix(".faiss.tmp")
    try:
        draft.unlink(missing_ok=True)  # do not write through a link
        index.save(draft)
        with draft.open("rb+") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        size = draft.stat().st_size
        draft.replace(file)
        _sync_directory(directory)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise IndexStoreError(
            f"cannot write the snapshot {file} ({error.strerror}); the documents are stored in "
            "SQLite, which is searched until a snapshot can be written"
        ) from error
    measured = index.measured_recall()
    if measured + RECALL_TOLERANCE < recall:
        logger.warning(
            "the vector index of space '%s' (%s) has a measured recall of %.3f, below the %s of "
            "--recall (for exact search: semsearch index --index-type flat)",
            space.name,
            kind,
            measured,
            recall,
        )
    return SnapshotRecord(
        space_id=space.id,
        generation=generation,
        file=file.name,
        bytes=size,
        sha256=sha256,
        vectors=len(index),
        last_chunk_id=int(index.ids[-1]) if len(index) else 0,
        kind=kind,
        recall=measured,
    )


def open_snapshot(directory: Path, record: SnapshotRecord) -> Snapshot | None:
    """Open a recorded snapshot; log a warning and return None if its file is damaged.

    Raises:
        FileNotFoundError: the file is missing, usually because a newer snapshot replaced it.
    """
    file = directory / record.file
    try:
        with _open(directory, record) as stream:
            fault = _fault(stream, record)
            if fault is None:
                # By its descriptor, as the file may have been replaced meanwhile.
                name = f"/dev/fd/{stream.fileno()}" if os.name == "posix" else str(file)
                snapshot = Snapshot(_class(record).open(name), file)
                if len(snapshot.index) == record.vectors:
                    return snapshot
                fault = "does not hold the recorded number of vectors"
    except FileNotFoundError:
        raise
    except ValueError as error:
        fault = str(error)
    except (OSError, RuntimeError, MemoryError) as error:  # FAISS raises the latter two
        fault = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    warn_of_fault(file, fault)
    return None


def warn_of_fault(file: Path, fault: str) -> None:
    """Log a warning about a snapshot that cannot be used."""
    logger.warning(
        "%s %s; searching the vectors in SQLite instead (the next `semsearch index` rewrites it)",
        file,
        fault,
    )


def snapshot_fault(
    directory: Path, record: SnapshotRecord, *, thoroughly: bool = False
) -> str | None:
    """A description of what is wrong with the file of a snapshot; None if nothing is.

    Args:
        directory: the directory of the file.
        record: its record.
        thoroughly: compute the hash again even if it is cached.
    """
    try:
        with _open(directory, record) as stream:
            return _fault(stream, record, thoroughly=thoroughly)
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _open(directory: Path, record: SnapshotRecord) -> BufferedReader:
    """Open the file of a record, which must be in the directory even if the record is damaged."""
    if not _FILE_NAME.fullmatch(record.file):
        raise OSError(errno.EINVAL, "not a snapshot's file name")
    file = directory / record.file
    if not stat.S_ISREG(file.stat().st_mode):  # opening a pipe would wait for its writer
        raise OSError(errno.EINVAL, "not a regular file")
    return file.open("rb")


def _class(record: SnapshotRecord) -> type[VectorIndex]:
    found = index_class(record.kind)
    if found is None:
        kind = record.kind[:40]
        raise ValueError(f"has a kind unknown to this version of semsearch ({kind!r})")
    return found


def _fault(
    stream: BufferedReader, record: SnapshotRecord, *, thoroughly: bool = False
) -> str | None:
    if index_class(record.kind) is None:
        return f"has a kind unknown to this version of semsearch ({record.kind[:40]!r})"
    if os.fstat(stream.fileno()).st_size != record.bytes:
        return "does not have the recorded size"
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
    """Size, modification time and inode; None if there is no such file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _sync_directory(directory: Path) -> None:
    """Make a rename durable; Windows has no such call and does not need it."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
