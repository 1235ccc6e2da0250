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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.errors import IndexStoreError
from semsearch.protocols import Matrix
from semsearch.stores.space import Space

logger = logging.getLogger(__name__)

Ids = NDArray[numpy.int64]

#: A search of fewer multiplications (some milliseconds) is single-threaded: waiting for threads
#: takes as long as they save and, on a busy machine, up to fifty times as long.
ONE_THREAD_PRODUCTS = 10_000_000

#: Where FAISS's file of an index with ids says what it is within: behind four letters for itself,
#: its width, its length, two fillers, a flag and its metric.
_FLAT_KIND_AT = 4 + 4 + 8 + 8 + 8 + 1 + 4

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
    """An opened snapshot: inner products over a memory-mapped file.

    Args:
        index: FAISS's, a flat one with the ids of chunks.
        file: where it was read from.

    Raises:
        ValueError: `index` is of another type or metric, or its ids are not in ascending order.
    """

    def __init__(self, index: Any, file: Path | None = None) -> None:
        import faiss

        if type(index) is not faiss.IndexIDMap:
            raise ValueError("is not an index with ids")
        flat: Any = faiss.downcast_index(index.index)
        if type(flat) not in (faiss.IndexFlat, faiss.IndexFlatIP) or {
            index.metric_type,
            flat.metric_type,
        } != {faiss.METRIC_INNER_PRODUCT}:
            raise ValueError("is not a flat index of inner products")
        self.ids: Ids = faiss.vector_to_array(index.id_map)
        if (index.d, index.ntotal, len(self.ids)) != (flat.d, flat.ntotal, flat.ntotal):
            raise ValueError("does not have one vector for each id")
        if (numpy.diff(self.ids) <= 0).any():
            raise ValueError("has ids that are not in ascending order")
        self._index = index
        self._file = file
        self._state = file and _file_state(file)
        #: Shape (len(ids), dimension); a view of the file.
        self.vectors: Matrix = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(
            flat.ntotal, flat.d
        )

    def is_intact(self) -> bool:
        """Whether its file, which is mapped into memory, is as it was when it was opened."""
        return self._file is None or _file_state(self._file) == self._state

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """Width of its vectors."""
        return int(self._index.d)

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest chunks of each query: scores and chunk ids, shape (len(queries), n).

        Args:
            queries: unit vectors, shape (m, dimension).
            n: how many; places that cannot be filled hold the id -1.
            allowed: only these chunk ids, sorted; None allows all.
        """
        import faiss

        parameters = None
        if allowed is not None:
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))
        is_small = queries.size * len(self) <= ONE_THREAD_PRODUCTS
        with _one_thread() if is_small else nullcontext():
            scores, ids = self._index.search(queries, n, params=parameters)
        return scores, ids


@contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS computes on the calling thread alone; what other threads use, it leaves as it is."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def snapshot_name(space_name: str, generation: int) -> str:
    """What the file of a snapshot is called."""
    return f"{space_name}-{generation}.faiss"


def write_snapshot(
    directory: Path,
    space: Space,
    generation: int,
    blocks: Iterable[tuple[Ids, Matrix]],
) -> SnapshotRecord:
    """Write a snapshot beside the database: whole under its name, or not there at all.

    Args:
        directory: where it goes.
        space: of which space.
        generation: the number of the snapshot.
        blocks: chunk ids, ascending, and their vectors.

    Raises:
        IndexStoreError: it cannot be written.
    """
    import faiss

    index = faiss.IndexIDMap(faiss.IndexFlatIP(space.dimension))
    last_chunk_id = 0
    for ids, matrix in blocks:
        index.add_with_ids(matrix, ids)
        last_chunk_id = int(ids[-1])
    file = directory / snapshot_name(space.name, generation)
    draft = file.with_suffix(".faiss.tmp")
    try:
        draft.unlink(missing_ok=True)  # were it a link, FAISS would write where it leads
        faiss.write_index(index, str(draft))
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
        vectors=index.ntotal,
        last_chunk_id=last_chunk_id,
        kind="flat",
        recall=1.0,
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
                snapshot = Snapshot(_mapped(file, stream), file)
                if len(snapshot) == record.vectors:
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
        "%s %s; searching the vectors in SQLite instead (the next `semsearch index` writes it "
        "anew)",
        file,
        fault,
    )


def snapshot_fault(directory: Path, record: SnapshotRecord) -> str | None:
    """What is wrong with a snapshot's file, or None."""
    try:
        with _open(directory, record) as stream:
            return _fault(stream, record)
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _open(directory: Path, record: SnapshotRecord) -> BufferedReader:
    """The file of a record; in the directory, whatever somebody may have put into the record."""
    if not _FILE_NAME.fullmatch(record.file):
        raise OSError(errno.EINVAL, "it is not the name of a snapshot")
    return (directory / record.file).open("rb")


def _fault(stream: BufferedReader, record: SnapshotRecord) -> str | None:
    if os.fstat(stream.fileno()).st_size != record.bytes:
        return "has another size than it was written with"
    if hashlib.file_digest(stream, "sha256").hexdigest() != record.sha256:
        return "is damaged (its SHA-256 is not the recorded one)"
    stream.seek(0)
    head = stream.read(_FLAT_KIND_AT + 4)
    if (head[:4], head[_FLAT_KIND_AT:]) != (b"IxMp", b"IxFI"):
        return "is not a flat index of inner products"
    return None


def _mapped(file: Path, stream: BufferedReader) -> Any:
    """FAISS's index over a file, mapped into memory."""
    import faiss

    # By its descriptor: under its name there could be, by now, no file, or one of another hash.
    name = f"/dev/fd/{stream.fileno()}" if os.name == "posix" else str(file)
    return faiss.read_index(name, faiss.IO_FLAG_MMAP_IFC)


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
