"""An index on Milvus: opened, created, read, and written by one process of a machine at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import cast

from semsearch.encoders.cache import cache_folder
from semsearch.errors import IndexNotFoundError, IndexStoreError
from semsearch.protocols import Encoder
from semsearch.storage.interface import Store, closed_on_error
from semsearch.storage.lock import writer_lock
from semsearch.storage.milvus.connection import Connection, target
from semsearch.storage.milvus.reader import MilvusReader
from semsearch.storage.milvus.schema import (
    DOCUMENT_COLUMNS,
    LATEST,
    PASSAGE_COLUMNS,
    VECTOR_COLUMNS,
    WORDS,
    IndexRecord,
    check_ours,
    create,
    read_record,
)
from semsearch.storage.milvus.writer import MilvusWriter
from semsearch.storage.spaces import Space, described_space


class MilvusStore:
    """Collections of Milvus; see `semsearch.storage.interface.Store`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def path(self) -> Path:
        """The address."""
        return cast("Path", self._connection.target.address)

    @contextmanager
    def read(self) -> Iterator[MilvusReader]:
        """What is written by now."""
        yield self._state()

    @contextmanager
    def writer(self, *, wait: float = 0) -> Iterator[MilvusWriter]:
        """A writer; Milvus has no locks, so only writers of this machine exclude each other."""
        with writer_lock(_lock_folder(self._connection), wait=wait, index=self.path):
            record = _latest_record(self._connection)
            writer = MilvusWriter(self._connection, self._state, record)
            try:
                yield writer
            finally:
                writer.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _state(self, record: IndexRecord | None = None) -> MilvusReader:
        return MilvusReader(self._connection, record)


def open_store(path: Path) -> Store:
    """Open the index at an address; see `semsearch.storage.open_store`."""
    wanted = target(path)
    if wanted.is_file and not Path(wanted.uri).exists():  # milvus-lite would create it
        raise wanted.not_found()
    connection = Connection(wanted)
    with closed_on_error(connection):
        _check(connection)
        return MilvusStore(connection)


def create_store(
    path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
) -> Store:
    """Open the index at an address, or create it with a space for each encoder."""
    try:
        return open_store(path)
    except IndexNotFoundError:
        connection = Connection(target(path))
    with closed_on_error(connection), writer_lock(_lock_folder(connection), index=path):
        try:
            _check(connection)  # another process may have created it meanwhile
        except IndexNotFoundError:
            _create(connection, max_tokens, encoders, dtype)
        return MilvusStore(connection)


def _check(connection: Connection) -> None:
    """Check that there is an index.

    Raises:
        IndexNotFoundError: there is none, or its creation was interrupted.
        IndexFormatError: the collection was made by something else, or has another format.
    """
    if not check_ours(connection, connection.target.name):
        raise connection.target.not_found()
    read_record(connection)


def _create(
    connection: Connection, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None
) -> None:
    """Create the collections; the record are written last."""
    target, spaces = connection.target, list[Space]()
    for encoder in encoders:
        spaces.append(described_space(encoder, dtype, spaces, complete=True))
        create(connection, target.vectors(spaces[-1]), VECTOR_COLUMNS, spaces[-1].dimension)
    has_words = connection.has_bm25
    create(connection, target.passages, PASSAGE_COLUMNS, kind=WORDS if has_words else "FLAT")
    create(connection, target.name, DOCUMENT_COLUMNS)
    connection.upsert(target.name, [IndexRecord(max_tokens, spaces, has_words).row()])


def _latest_record(connection: Connection) -> IndexRecord:
    """The record, once all that was written is there.

    Higher numbers than those in the record are taken, too: a killed server can lose the latest
    record and still have the latest rows.
    """
    record = read_record(connection, LATEST)

    def highest(collection: str, key: str, known: int) -> int:
        rows = connection.call("query", collection, f"{key} > {known}", [key], **LATEST)
        return max([known, *(int(row[key]) for row in rows)])

    return record._replace(
        last_document=highest(connection.target.name, "document", record.last_document),
        last_passage=highest(connection.target.passages, "passage", record.last_passage),
    )


def _lock_folder(connection: Connection) -> Path:
    """The folder of the writer lock, in the user's cache."""
    target = connection.target
    name = blake2b(f"{target.uri}/{target.name}".encode(), digest_size=16).hexdigest()
    folder = cache_folder() / "milvus" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IndexStoreError(f"cannot write in {folder}: {error.strerror}") from error
    return folder
