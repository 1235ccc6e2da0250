"""The SQLite file of an index: opening it, reading one committed state, writing one transaction."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, Self, TypeAlias
from weakref import WeakValueDictionary

from sqlalchemy import Connection, Dialect, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

from semsearch.addresses import sqlite_uri
from semsearch.errors import (
    DamagedIndexError,
    IndexBusyError,
    IndexChangedError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
    IndexVersionError,
    quoted,
)
from semsearch.stores.local.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    DamageError,
    create_tables,
    get_setting,
    put_setting,
)
from semsearch.stores.protocol import closed_on_error

logger = logging.getLogger(__name__)

DATABASE_NAME = "index.sqlite"
BUSY_TIMEOUT_MS = 10_000
#: How long the first writer of a copy may take to record that the copy is a separate index.
CLAIM_SECONDS = 0.5
#: SQLite's page cache of a writer; with the default (2 MiB), a large index is read again and again.
WRITER_CACHE_KIB = 64 * 1024

#: SQLite's errors for damaged databases: by code or, where a code is ambiguous, by message.
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_NOTADB)
_DAMAGE_WORDS = (
    "malformed",
    "no such table",
    "no such column",
    "has no column",
)

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    # Of a new database: a page holds five vectors of 384 numbers, one of the default size only two.
    "PRAGMA page_size = 8192",
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",  # what was committed survives a power cut
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",  # a crafted database cannot call functions from its schema
    "PRAGMA cell_size_check = ON",
)

#: Schema objects that run code when a table is read or written; an index has none.
_FOREIGN_SCHEMA = """
SELECT CASE WHEN type IN ('view', 'trigger') THEN type ELSE 'virtual table' END
FROM sqlite_schema
WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' AND name != 'chunks_fts'
"""


class _Access(Enum):
    """How a database is opened: URI parameters by permissions and existing files.

    In a read-only directory, SQLite can coordinate with a writer only through the ``-shm`` file
    that the writer created, and cannot open a database in WAL mode without it.
    """

    #: The default.
    SHARED = "mode=rw"
    #: Read-only; a writer is active or was killed: its log is read under SQLite's locks.
    READ_ONLY = "mode=ro"
    #: Read-only, a log without its -shm file: SQLite indexes the log in private memory.
    PRIVATE = "mode=ro&vfs=unix-none"
    #: Read-only, no log: all commits are in the database file.
    IMMUTABLE = "mode=ro&immutable=1"

    @property
    def is_locked(self) -> bool:
        """Whether SQLite's locks protect the state of a transaction from being overwritten."""
        return self in (_Access.SHARED, _Access.READ_ONLY)


_URL = make_url("sqlite+pysqlite://")
#: The compiled statements of all databases: SQLAlchemy takes longer to compile most than to run
#: them, and has one cache per engine.
_COMPILED: LRUCache[Any, Any] = LRUCache(500)


@cache
def _dialect() -> Dialect:
    """The dialect of all databases; each compiled statement belongs to one."""
    engine = create_engine(_URL)
    with engine.connect():  # it initialises the dialect
        pass
    engine.dispose()
    return engine.dialect


#: Size, modification time and inode of the database and its log.
_FileState: TypeAlias = list[tuple[int, int, int] | None]


class Database:
    """An index directory's database.

    Args:
        directory: the index.
        accept_copy: open the index even if it was copied while it was being written, which can
            mix two states; see `semsearch.stores.local.maintenance`.

    Raises:
        IndexNotFoundError: there is no index in `directory`.
        IndexFormatError: it is not an index, has another format, or was copied while it was
            being written.
    """

    def __init__(self, directory: Path, *, accept_copy: bool = False) -> None:
        _check_place(directory)
        if not (directory / DATABASE_NAME).exists():
            raise _not_found(directory)
        self._prepare(directory)
        with closed_on_error(self):
            if not accept_copy:
                self._check_log()
            self._check_format()

    def _prepare(self, directory: Path) -> None:
        self.directory = directory.absolute()  # the working directory may change
        self.file = self.directory / DATABASE_NAME
        self._opened = self._present_file()
        self._log = self.directory / f"{DATABASE_NAME}-wal"
        self._access = self._current_access()
        self._state: _FileState | None = None  # of the files, for connections without locks
        # One connection per reading thread; up to five stay open.
        connect: Callable[[], Any] = self._connect
        dialect, shared = _dialect(), {"compiled_cache": _COMPILED}
        pool = QueuePool(connect, max_overflow=-1, dialect=dialect)
        self._engine = Engine(pool, dialect, _URL, execution_options=shared)
        event.listen(self._engine, "begin", self._begin)
        event.listen(self._engine, "handle_error", _check_error)
        self._uses: set[object] = set()  # reads and writes in progress
        _open[id(self)] = self

    @classmethod
    def create(cls, directory: Path, fill: Callable[[Connection], None]) -> Self:
        """Open the database in `directory`, or create it.

        The directory may be empty or missing. One transaction creates the tables and the first
        rows: if several processes create an index at once, one does and the others open it.

        Args:
            directory: the index.
            fill: writes the first rows, in the transaction that creates the tables.

        Raises:
            IndexFormatError: the directory holds other files.
        """
        try:
            return cls(directory)
        except IndexNotFoundError:
            pass
        try:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / DATABASE_NAME).touch()
        except OSError as error:
            raise IndexStoreError(f"cannot create {directory}: {error.strerror}") from None
        store = cls.__new__(cls)
        store._prepare(directory)
        with closed_on_error(store):
            with store.write() as connection:
                if _is_blank(connection):
                    create_tables(connection)
                    put_setting(connection, "inode", store.file.stat().st_ino)
                    fill(connection)
            store._check_format()
        return store

    def is_replaced(self) -> bool:
        """Whether the path leads to another file than the open one, or to none."""
        return self._present_file() != self._opened

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One committed state of the database, unchanged until the block ends.

        Raises:
            IndexChangedError: the index, in a read-only directory and thus read without locks,
                was written meanwhile; discard what was read.
        """
        access = self._current_access()
        before = None if access.is_locked else self._file_state()
        if (access, before) != (self._access, self._state):
            self._engine.dispose()  # without locks, a connection never sees later commits
            self._access, self._state = access, before
        try:
            with self._connected() as connection, connection.begin():
                yield connection
        except (IndexStoreError, FileNotFoundError):
            self._check_unchanged(before)
            raise
        self._check_unchanged(before)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction."""
        with self.writing() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose transactions (``with connection.begin():``) take the write lock.

        Raises:
            IndexStoreError: the index cannot be written; SQLite would fail only at the first row.
                A transaction also raises it if the index was replaced or deleted.
        """
        if not self._is_writable():
            raise IndexStoreError(f"cannot write in {self.directory}: Permission denied")
        with self._connected() as connection:
            self._prepare_for_writing(connection)
            writing = connection.execution_options(semsearch_begin="IMMEDIATE")
            self._claim(writing)
            yield writing

    def close(self) -> None:
        """Close the database; the last process to do so moves the log into it."""
        self._engine.dispose()

    def close_idle(self) -> None:
        """Close connections that are not in use; those in use return to the same pool."""
        self._engine.pool.dispose()

    def leave_to_parent(self) -> None:
        """In a forked process, leave what was in use to the parent; the file is refused."""
        self._engine.dispose(close=False)  # a thread of the parent may hold the pool's locks
        if self._uses:
            _left_to_parent.add(self._opened)
            event.listen(self._engine, "before_cursor_execute", self._refuse)
            self._uses.clear()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        use, pool = object(), self._engine.pool
        self._uses.add(use)
        try:
            with self._translated(), self._engine.connect() as connection:
                yield connection
        finally:
            if use in self._uses:  # not in a process forked meanwhile, which closes nothing
                self._uses.remove(use)
                if self._engine.pool is not pool:  # closed meanwhile
                    pool.dispose()

    def _refuse(self, *_: object) -> NoReturn:
        raise IndexStoreError(
            f"{self.directory} was being read or written when this process was forked; fork "
            "earlier, or start the process with 'spawn' or 'forkserver'"
        )

    def _is_writable(self) -> bool:
        return all(os.access(place, os.W_OK) for place in (self.directory, self.file))

    def _current_access(self) -> _Access:
        if os.access(self.directory, os.W_OK):
            return _Access.SHARED
        journal, shared_memory = (
            self._log.with_name(f"{DATABASE_NAME}-{name}") for name in ("journal", "shm")
        )
        if journal.exists() or (self._log.exists() and shared_memory.exists()):
            return _Access.READ_ONLY
        return _Access.PRIVATE if self._has_log() else _Access.IMMUTABLE

    def _has_log(self) -> bool:
        try:
            return self._log.stat().st_size > 0
        except FileNotFoundError:  # also where a writer has just removed it
            return False

    def _present_file(self) -> tuple[int, int] | None:
        """Device and inode of the file at the path; None if there is none."""
        try:
            found = self.file.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _begin(self, connection: Connection) -> None:
        mode = connection.get_execution_options().get("semsearch_begin", "DEFERRED")
        if mode != "DEFERRED" and self.is_replaced():  # the log at the path may be of the new file
            raise IndexStoreError(
                f"{self.directory} was replaced or deleted while it was written; try again"
            )
        connection.exec_driver_sql(f"BEGIN {mode}")

    def _connect(self) -> sqlite3.Connection:
        if self._opened in _left_to_parent:
            self._refuse()
        connection = self._connect_with(self._access)
        if self.is_replaced():
            connection.close()
            raise IndexChangedError(f"{self.directory} was replaced while it was read; try again")
        return connection

    def _connect_with(self, access: _Access) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{sqlite_uri(self.file)}?{access.value}", uri=True, check_same_thread=False
        )
        connection.isolation_level = None  # `_begin` executes BEGIN
        with closed_on_error(connection):
            try:
                if access is _Access.PRIVATE:  # first, because other pragmas may open the log
                    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
            except UnicodeDecodeError as error:
                raise _undecodable(error) from error
        return connection

    def _file_state(self) -> _FileState:
        state: _FileState = []
        for file in (self.file, self._log):
            try:
                found = file.stat()
                state.append((found.st_size, found.st_mtime_ns, found.st_ino))
            except FileNotFoundError:
                state.append(None)
        return state

    def _check_unchanged(self, before: _FileState | None) -> None:
        if before is not None and before != self._file_state():
            raise IndexChangedError(f"{self.directory} was written while it was read; try again")

    def _prepare_for_writing(self, connection: Connection) -> None:
        """Set WAL mode, in which many processes can read while one writes, and a larger cache.

        The mode persists.
        """
        raw: Any = connection.connection.driver_connection
        raw.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        while True:
            try:
                mode = raw.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:  # SQLite does not wait when two set it
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            logger.warning(
                "the file system of %s does not support SQLite's write-ahead log (journal mode is "
                "'%s'): queries wait while the index is written",
                self.directory,
                mode,
            )

    def _claim(self, connection: Connection) -> None:
        """Record the inode of the database file, to recognise copies."""
        inode = self.file.stat().st_ino
        with connection.begin():
            if not _is_blank(connection) and get_setting(connection, "inode", 0) != inode:
                put_setting(connection, "inode", inode)

    def _check_log(self) -> None:
        """Refuse a database and a log that were copied while the index was written.

        They may be from different times and form an inconsistent state.
        """
        deadline = time.monotonic() + CLAIM_SECONDS
        while not self._is_own_log():
            if time.monotonic() > deadline:
                raise DamagedIndexError(
                    f"{self.directory} was copied while the index was open, and the copy may be "
                    f"inconsistent; copy it again after closing the index, or check this copy "
                    f"with: semsearch verify --index {quoted(str(self.directory))}"
                )
            time.sleep(0.02)

    def _is_own_log(self) -> bool:
        """Whether the log, if there is one, was written for this file and not copied with it."""
        if not self._has_log():
            return True
        access = _Access.READ_ONLY if self._access is _Access.SHARED else self._access
        # A read-only connection does not change the log.
        with self._translated(), closing(self._connect_with(access)) as connection:
            query = "SELECT value FROM settings WHERE name = 'inode'"
            row = None
            with suppress(sqlite3.OperationalError):  # no such table: `_check_format` reports it
                row = connection.execute(query).fetchone()
        return row is None or str(row[0]) == str(self.file.stat().st_ino)

    def _check_format(self) -> None:
        with self.read() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            foreign = connection.exec_driver_sql(_FOREIGN_SCHEMA).scalar()
            if _is_blank(connection):
                raise _not_found(self.directory)
        if application != APPLICATION_ID:
            raise IndexFormatError(f"{self.file} is a database of another program, not an index")
        if foreign is not None:
            raise DamagedIndexError(f"{self.file} contains a {foreign}, which no index has")
        if version != FORMAT_VERSION:
            raise IndexVersionError(
                f"{self.directory} has index format {version}, and this semsearch reads format "
                f"{FORMAT_VERSION}: use the version that made it, or index the corpus again"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except DBAPIError as error:
            raise _our_error(self.file, error.orig) from error
        except sqlite3.Error as error:
            raise _our_error(self.file, error) from error
        except SQLAlchemyError as error:
            raise IndexStoreError(f"{self.file}: {error}") from error


#: Databases, by their ids.
_open: WeakValueDictionary[int, Database] = WeakValueDictionary()
#: Files with inherited connections: SQLite takes them for locked, but the locks are the parent's.
_left_to_parent: set[tuple[int, int] | None] = set()


def _all_open() -> list[Database]:
    # A list of references first, because other threads may open databases.
    return [database for reference in _open.valuerefs() if (database := reference())]


def _before_fork() -> None:
    for database in _all_open():
        database.close_idle()


def _after_fork_in_child() -> None:
    for database in _all_open():
        database.leave_to_parent()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


def _check_error(context: ExceptionContext) -> None:
    # SQLAlchemy closes the connection at Ctrl-C or a TimeoutError, but SQLite keeps the transaction
    # and its lock until the cursor is freed; an open connection is rolled back.
    if not isinstance(context.original_exception, sqlite3.Error):
        context.is_disconnect = False
    if isinstance(context.original_exception, UnicodeDecodeError):
        raise _undecodable(context.original_exception)


def _undecodable(error: UnicodeDecodeError) -> DamageError:
    """SQLite's messages quote stored text, and Python cannot decode damaged text."""
    return DamageError(error.object.decode("utf-8", "backslashreplace"))


def _is_blank(connection: Connection) -> bool:
    count: int = connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one()
    return count == 0


def _check_place(directory: Path) -> None:
    try:
        is_file = directory.exists() and not directory.is_dir()
        (directory / DATABASE_NAME).exists()
    except OSError as error:  # a name that is too long, a directory without permission
        raise IndexStoreError(f"{error.strerror}: {directory}") from None
    if is_file:
        raise IndexFormatError(f"{directory} is a file, not an index directory")


def _not_found(directory: Path) -> IndexStoreError:
    if directory.is_dir() and any(
        entry.name.partition(".")[0] not in ("index", "writer") for entry in directory.iterdir()
    ):
        return IndexFormatError(
            f"{directory} is not an index: it contains other files, but no {DATABASE_NAME} with "
            "tables; choose another directory"
        )
    return IndexNotFoundError(
        f"no index at {directory}; make one with: "
        f"semsearch index CORPUS --index {quoted(str(directory))}"
    )


def _our_error(file: Path, error: BaseException | None) -> IndexStoreError:
    message = str(error)
    code = getattr(error, "sqlite_errorcode", None)
    if (
        code is None  # raised by Python's sqlite3 (text that is not UTF-8) or by semsearch
        or code & 0xFF in _DAMAGE_CODES
        or any(words in message for words in _DAMAGE_WORDS)
    ):
        return DamagedIndexError(
            f"{file} is not an SQLite database or is damaged ({message}); "
            "restore a copy of the index, or index the corpus again"
        )
    if code == sqlite3.SQLITE_IOERR_SHMMAP:
        return IndexStoreError(
            f"the file system of {file.parent} does not support SQLite's write-ahead log (it has "
            "no memory shared between processes); put the index on a local disk"
        )
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return IndexStoreError(
            f"no space left on the disk of {file.parent}: even reading needs a little, for "
            f"{file.name}-shm"
        )
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return IndexStoreError(
            f"a write to {file.parent} was interrupted, and undoing it needs write permission; "
            f"with that, run: semsearch info --index {quoted(str(file.parent))}"
        )
    if "locked" in message:
        return IndexBusyError(f"{file} is locked by another process")
    return IndexStoreError(f"{file}: {message}")
