"""An index on Milvus: opened, created, read, and written by one process of a machine at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import cast

from semsearch.encoders.cache import cache_folder
from semsearch.errors import IndexNotFoundError
from semsearch.protocols import Encoder
from semsearch.storage.interface import Settings, Store, closed_on_error
from semsearch.storage.lock import writer_lock
from semsearch.storage.milvus.connection import LATEST, Connection, target
from semsearch.storage.milvus.reader import MilvusReader
from semsearch.storage.milvus.schema import (
    IndexRecord,
    check_ours,
    create_documents,
    create_space,
    read_record,
)
from semsearch.storage.milvus.writer import MilvusWriter
from semsearch.storage.spaces import described_space


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
        yield MilvusReader(self._connection)

    @contextmanager
    def writer(self, *, wait: float = 0) -> Iterator[MilvusWriter]:
        """A writer; Milvus has no locks, so only writers of this machine exclude each other."""
        with writer_lock(_lock_folder(self._connection), wait=wait, index=self.path):
            yield MilvusWriter(self._connection, _latest_record(self._connection))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


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
    """Create the collections; the record is written last."""
    record = IndexRecord(Settings(max_tokens), [], connection.has_bm25)
    for encoder in encoders:
        record.spaces.append(described_space(encoder, dtype, record.spaces, complete=True))
        create_space(connection, record, record.spaces[-1])
    create_documents(connection)
    connection.upsert(connection.target.name, [record.row()])


def _latest_record(connection: Connection) -> IndexRecord:
    """The record, once all that was written is there.

    Higher numbers of documents than it has are taken, too: a killed server can lose the latest
    record and still have the latest rows.
    """
    record = read_record(connection, LATEST)
    newer = f"document > {record.last_document}"
    rows = connection.query(connection.target.name, newer, ["document"], LATEST)
    last = max([record.last_document, *(int(row["document"]) for row in rows)])
    return record._replace(last_document=last)


def _lock_folder(connection: Connection) -> Path:
    """The folder of the writer lock, in the user's cache."""
    target = connection.target
    name = blake2b(f"{target.uri}/{target.name}".encode(), digest_size=16).hexdigest()
    folder = cache_folder() / "milvus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
