"""The SQLite file of an index: opening it, reading one committed state, writing transactions.

Connections are pooled, one for each reading thread. Before each read, those that are open to a file
that was replaced meanwhile are closed.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from sqlalchemy import Connection, Dialect, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

from semsearch.errors import (
    DamagedIndexError,
    IndexBusyError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
    quoted,
)
from semsearch.storage.interface import closed_on_error
from semsearch.storage.interruption import abandonment
from semsearch.storage.sqlite.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    create_tables,
    put_setting,
)

DATABASE_NAME = "index.sqlite"
BUSY_TIMEOUT_MS = 10_000
#: Steps of SQLite's machine, some microseconds each at most, between looks for an abandoned search.
INTERRUPTED_AFTER_STEPS = 10_000

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    # Of a new database: a page holds five vectors of 384 numbers, one of the default size only two.
    "PRAGMA page_size = 8192",
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",  # what was committed survives a power cut
    "PRAGMA secure_delete = ON",
)
#: 64 MiB of pages, and a log of 128 MiB: by default, a large index is read and written repeatedly.
_WRITER_PRAGMAS = ("PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 16384")

_URL = make_url("sqlite+pysqlite://")
#: The compiled statements of all databases: SQLAlchemy takes longer to compile most than to run
#: them, and has one cache per engine.
_COMPILED: LRUCache[Any, Any] = LRUCache(500)


@cache
def _dialect() -> Dialect:
    """The dialect of all databases; each compiled statement belongs to one."""
    engine = create_engine(_URL)
    with engine.connect():  # it initialises the dialect
        return engine.dialect


_FORMAT = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) AS tables
FROM pragma_application_id, pragma_user_version
"""


class Database:
    """An index directory's database.

    With `fill`, it is created if there is none, in a directory that may be empty or missing. One
    transaction creates the tables and the first rows, which `fill` writes: if several processes
    create an index at once, one does and the others open it.

    Raises:
        IndexNotFoundError: there is no index in `directory`.
        IndexFormatError: it is not an index, or has another format.
    """

    def __init__(self, directory: Path, fill: Callable[[Connection], None] | None = None) -> None:
        self._given = directory  # for messages
        self.directory = directory.absolute()  # the working directory may change
        self.file = self.directory / DATABASE_NAME
        if fill:
            _create_file(directory)
        #: SQLite's parameters, and the file that connections are open to.
        self._opened = self._present()
        connect: Callable[[], Any] = self._connect
        pool = QueuePool(connect, max_overflow=-1, dialect=_dialect())
        options = {"compiled_cache": _COMPILED}
        self._engine = Engine(pool, _dialect(), _URL, execution_options=options)
        event.listen(self._engine, "begin", _begin)
        event.listen(self._engine, "handle_error", _keep_connection)
        _open.add(self)
        with closed_on_error(self):
            if fill:
                self._create(fill)
            self._check_format()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One committed state of the database, unchanged until the block ends."""
        with self._connected() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose transactions (``with connection.begin():``) take the write lock."""
        with self._connected() as connection:
            self._prepare_for_writing(connection)
            yield connection.execution_options(semsearch_writes=True)

    def close(self) -> None:
        """Close the database; the last process to do so moves the log into it."""
        self._engine.dispose()

    def check_present(self) -> None:
        """Close connections to a replaced file; raise IndexNotFoundError if there is none."""
        present = self._present()
        if present != self._opened:
            self._engine.dispose()
            self._opened = present

    def _present(self) -> tuple[str, tuple[int, ...]]:
        """The file at the path, and how it can be opened.

        In a read-only directory, SQLite cannot create the files of a write-ahead log. If a writer
        has created them, it reads the log; otherwise all commits are in the database file, which
        is then read without locks.
        """
        try:
            found = self.file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise _not_found(self._given) from None
        except OSError as error:  # a name that is too long, no permission
            raise IndexStoreError(f"{error.strerror}: {self._given}") from None
        file = found.st_dev, found.st_ino
        if os.access(self.directory, os.W_OK):
            return "mode=rw", file
        if self.file.with_name(f"{DATABASE_NAME}-wal").exists():
            return "mode=ro", file
        return "mode=ro&immutable=1", (*file, found.st_size, found.st_mtime_ns)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection to the present file; SQLite's errors are raised as ours."""
        self.check_present()
        try:
            with self._engine.connect() as connection:
                raw: Any = connection.connection.driver_connection
                # Ctrl-C in a handler would be lost, so there is none without a need.
                raw.set_progress_handler(abandonment(), INTERRUPTED_AFTER_STEPS)
                yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise _our_error(self.file, getattr(error, "orig", error)) from error

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.file.as_uri()}?{self._opened[0]}"
        # `_begin` begins transactions.
        options: Any = {"check_same_thread": False, "isolation_level": None}
        connection: sqlite3.Connection = sqlite3.connect(address, uri=True, **options)
        connection.create_function("instant", 1, _instant, deterministic=True)
        with closed_on_error(connection):
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        return connection

    def _prepare_for_writing(self, connection: Connection) -> None:
        """Set WAL mode, in which many processes can read while one writes."""
        raw: Any = connection.connection.driver_connection
        for pragma in _WRITER_PRAGMAS:
            raw.execute(pragma)
        deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:  # SQLite does not wait when two set it
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _create(self, fill: Callable[[Connection], None]) -> None:
        with self.writing() as connection, connection.begin():
            if not connection.exec_driver_sql(_FORMAT).one().tables:
                create_tables(connection)
                put_setting(connection, "revision", [uuid4().hex, 0])
                fill(connection)

    def _check_format(self) -> None:
        with self.read() as connection:
            application, version, tables = connection.exec_driver_sql(_FORMAT).one()
        if not tables:
            raise _not_found(self._given)
        if application != APPLICATION_ID:
            raise IndexFormatError(f"{self.file} is a database of another program, not an index")
        if version != FORMAT_VERSION:
            raise IndexFormatError(
                f"{self.directory} has index format {version}, and this semsearch reads format "
                f"{FORMAT_VERSION}: use the version that made it, or index the corpus again"
            )


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("semsearch_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _instant(value: object) -> int | None:
    """``instant`` in SQL."""
    from semsearch.filters.times import instant  # of filters alone

    return instant(value) if isinstance(value, str) else None


_open: WeakSet[Database] = WeakSet()


def _close_unused() -> None:
    """Close all connections that are not in use: SQLite's locks do not survive a fork."""
    for database in list(_open):
        database.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_close_unused)


def _keep_connection(context: ExceptionContext) -> None:
    # SQLAlchemy closes the connection at Ctrl-C or a TimeoutError, but SQLite keeps the transaction
    # and its lock until the cursor is freed; an open connection is rolled back.
    if not isinstance(context.original_exception, sqlite3.Error):
        context.is_disconnect = False


def _create_file(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / DATABASE_NAME).touch()
    except OSError as error:
        raise IndexStoreError(f"cannot create {directory}: {error.strerror}") from None


def _not_found(directory: Path) -> IndexStoreError:
    if directory.is_file():
        return IndexFormatError(f"{directory} is a file, not an index directory")
    if directory.is_dir() and any(
        entry.name.partition(".")[0] not in ("index", "writer") for entry in directory.iterdir()
    ):
        return IndexFormatError(
            f"{directory} contains other files, but no {DATABASE_NAME}; choose another directory"
        )
    return IndexNotFoundError(
        f"no index at {directory}; make one with: "
        f"semsearch index CORPUS --index {quoted(str(directory))}"
    )


def _our_error(file: Path, error: BaseException | None) -> IndexStoreError:
    message = str(error)
    code = getattr(error, "sqlite_errorcode", None)
    # Python's sqlite3 reports text that is not UTF-8 without a code.
    if code is None or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedIndexError(
            f"{file} is not an SQLite database or is damaged ({message}); "
            "restore a copy of the index, or index the corpus again"
        )
    if "locked" in message:
        return IndexBusyError(f"{file} is locked by another process")
    return IndexStoreError(f"{file}: {message}")
