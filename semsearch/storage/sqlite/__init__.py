"""The local store: SQLite, with FAISS snapshots beside it, in one directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from semsearch.protocols import Encoder
from semsearch.storage.interface import Settings
from semsearch.storage.sqlite.database import Database
from semsearch.storage.sqlite.reader import Cache, SqliteReader
from semsearch.storage.sqlite.schema import write_settings
from semsearch.storage.sqlite.spaces import insert_space

if TYPE_CHECKING:
    from semsearch.storage.sqlite.writer import SqliteWriter


class SqliteStore:
    """SQLite and FAISS in a directory; see `semsearch.storage.interface.Store`.

    If the directory was replaced, the index that is there now is read and written.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._cache = Cache()

    @property
    def path(self) -> Path:
        """The directory, as an absolute path."""
        return self.database.directory

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """One committed state, the same until the block ends."""
        with self.database.read() as connection:
            yield SqliteReader(connection, self.path, self._cache)

    @contextmanager
    def writer(self, *, wait: float = 0) -> Iterator[SqliteWriter]:
        """A writer; one thread of one process at a time can have one."""
        from semsearch.storage.lock import writer_lock
        from semsearch.storage.sqlite.spaces import remove_leftovers
        from semsearch.storage.sqlite.writer import SqliteWriter

        self.database.check_present()
        with writer_lock(self.path, wait=wait), self.database.writing() as connection:
            remove_leftovers(connection, self.path, keep_previous=True)  # of a run that was killed
            yield SqliteWriter(connection, self.path, self._cache)

    def close(self) -> None:
        """Close the database and the snapshots."""
        self._cache = Cache()
        self.database.close()


def open_store(path: Path) -> SqliteStore:
    """Open the index in a directory; see `semsearch.storage.open_store`."""
    return SqliteStore(Database(path))


def create_store(path: Path, max_tokens: int, encoders: Sequence[Encoder]) -> SqliteStore:
    """Create an index in a directory, or open the one that another process has just created."""

    def fill(connection: Connection) -> None:
        write_settings(connection, Settings(max_tokens))
        for encoder in encoders:
            insert_space(connection, encoder, complete=True)

    for encoder in encoders:
        encoder.description()  # loads the model: before the transaction
    return SqliteStore(Database(path, fill))
