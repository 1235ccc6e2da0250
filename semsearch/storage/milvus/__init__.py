"""The store of the extra ``milvus``: an index on a Milvus server, or in a file of milvus-lite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from semsearch.encoders.cache import cache_folder
from semsearch.errors import IndexNotFoundError
from semsearch.protocols import Encoder
from semsearch.storage.interface import Settings, closed_on_error
from semsearch.storage.lock import writer_lock
from semsearch.storage.milvus.connection import Connection
from semsearch.storage.milvus.reader import MilvusReader
from semsearch.storage.milvus.schema import (
    DOCUMENT_COLUMNS,
    NO_VECTOR,
    PASSAGE_COLUMNS,
    IndexRecord,
    create_collection,
    is_collection,
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
        return self._connection.address

    @contextmanager
    def read(self) -> Iterator[MilvusReader]:
        """What is written by now."""
        yield MilvusReader(self._connection, read_record(self._connection))

    @contextmanager
    def writer(self, *, wait: float = 0) -> Iterator[MilvusWriter]:
        """A writer; Milvus has no locks, so only writers of this machine exclude each other."""
        with writer_lock(_lock_folder(self._connection), wait=wait, index=self.path):
            # "Strong" waits for what other processes have written.
            yield MilvusWriter(self._connection, read_record(self._connection, "Strong"))

    def close(self) -> None:
        """Close the connection; a file of milvus-lite stays open until the process ends."""
        self._connection.close()


def open_store(path: Path) -> MilvusStore:
    """Open the index at an address; see `semsearch.storage.open_store`."""
    connection = Connection(path)
    with closed_on_error(connection):
        _load(connection)
        return MilvusStore(connection)


def create_store(path: Path, max_tokens: int, encoders: Sequence[Encoder]) -> MilvusStore:
    """Create an index at an address, or open the one that another process has just created."""
    connection = Connection(path, creates=True)
    with closed_on_error(connection), writer_lock(_lock_folder(connection), index=path):
        try:
            _load(connection)  # another process may have created it meanwhile
        except IndexNotFoundError:
            _create(connection, max_tokens, encoders)
        return MilvusStore(connection)


def _load(connection: Connection) -> None:
    """Let Milvus load the index, if it has not yet.

    Raises:
        IndexNotFoundError: there is none, or its creation was interrupted.
        IndexFormatError: the collection was made by something else, or has another format.
    """
    if not is_collection(connection, connection.name):
        raise connection.not_found()
    connection.call("load_collection", connection.name)
    for space in read_record(connection).spaces:
        connection.call("load_collection", connection.passages(space))


def _create(connection: Connection, max_tokens: int, encoders: Sequence[Encoder]) -> None:
    """Create the collections; the record is written last."""
    record = IndexRecord(Settings(max_tokens), [])
    for encoder in encoders:
        space = described_space(encoder, record.spaces, complete=True)
        create_collection(connection, connection.passages(space), PASSAGE_COLUMNS, space.dimension)
        record.spaces.append(space)
    create_collection(connection, connection.name, DOCUMENT_COLUMNS, len(NO_VECTOR))
    connection.upsert(connection.name, [record.row()])


def _lock_folder(connection: Connection) -> Path:
    """The folder of the writer lock, in the user's cache."""
    name = blake2b(f"{connection.uri}/{connection.name}".encode(), digest_size=16).hexdigest()
    folder = cache_folder() / "milvus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
