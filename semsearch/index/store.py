"""The SQLite file of an index: opening it, reading one committed state, writing one transaction."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, Self

from sqlalchemy import Connection, Engine, ExceptionContext, bindparam, create_engine, event, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from semsearch.errors import (
    IndexBusyError,
    IndexFormatError,
    IndexNotFoundError,
    IndexStoreError,
)
from semsearch.index.lock import writer_lock
from semsearch.index.migrations import migrate
from semsearch.index.schema import (
    APPLICATION_ID,
    FORMAT_VERSION,
    create_tables,
    settings,
)
from semsearch.index.stored import DamageError, stored_json

__all__ = ["DATABASE_NAME", "Store", "closed_on_error", "get_setting", "put_setting"]

DATABASE_NAME = "index.sqlite"
BUSY_TIMEOUT_MS = 10_000

#: How SQLite says that a database is not what semsearch wrote: by codes and, where one code says
#: many things, by words.
_DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_NOTADB)
_DAMAGE_WORDS = ("malformed", "no such table", "no such column", "has no column")

_SETTING = select(settings.c.value).where(settings.c.name == bindparam("name"))

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",  # what was committed survives a power cut
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",  # a crafted database cannot call functions from its schema
    "PRAGMA cell_size_check = ON",
)

#: What runs when a table is read or written; nothing of ours does.
_FOREIGN_SCHEMA = """
SELECT CASE WHEN type IN ('view', 'trigger') THEN type ELSE 'virtual table' END
FROM sqlite_schema
WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' AND name != 'chunks_fts'
"""


class _Closes(Protocol):
    def close(self) -> None:
        """Let go of what it holds."""


@contextmanager
def closed_on_error(opened: _Closes) -> Iterator[None]:
    """Close what was opened when the rest of its making fails, and nobody will get to close it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise


class Store:
    """An index directory's database.

    Raises:
        IndexNotFoundError: there is no index in `directory`.
        IndexFormatError: it is something else, or of a newer format.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / DATABASE_NAME
        _check_place(directory)
        if not self.file.exists():
            raise _not_found(directory)
        self._engine = self._make_engine()
        with closed_on_error(self):
            self._check_format()

    @classmethod
    def create(cls, directory: Path) -> Self:
        """The store in `directory`, made with empty tables unless there is one.

        An empty or missing directory is taken; so is one where an earlier creation was cut short.

        Raises:
            IndexFormatError: the directory holds other things.
        """
        _check_place(directory)
        file = directory / DATABASE_NAME
        if directory.exists() and not file.exists() and any(directory.iterdir()):
            raise IndexFormatError(
                f"{directory} is a directory with other things in it, not an index; choose another"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError as error:
            raise IndexStoreError(f"cannot create {directory}: {error.strerror}") from None
        store = cls.__new__(cls)
        store.directory, store.file = directory, file
        store._engine = store._make_engine()
        with closed_on_error(store):
            with store.write() as connection:
                blank = _is_blank(connection)
                if blank:
                    create_tables(connection)
            store._check_format()
            if blank:
                with store._translated(), closing(store._connect()) as connection:
                    connection.execute("PRAGMA journal_mode = WAL")  # many read while one writes
        return store

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One committed state of the database, the same until the block ends."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that lands whole or not at all."""
        with self.writing() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose transactions (``with connection.begin():``) take the write lock."""
        with self._translated(), self._engine.connect() as connection:
            yield connection.execution_options(semsearch_begin="IMMEDIATE")

    def close(self) -> None:
        """Let go of the file; the last one to do so folds the write-ahead log into it."""
        self._engine.dispose()

    def _make_engine(self) -> Engine:
        engine = create_engine("sqlite+pysqlite://", creator=self._connect, poolclass=QueuePool)
        event.listen(engine, "begin", _begin)
        event.listen(engine, "handle_error", _check_error)
        return engine

    def _connect(self) -> sqlite3.Connection:
        writable = os.access(self.directory, os.W_OK)
        mode = "mode=rw" if writable else "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"{self.file.absolute().as_uri()}?{mode}", uri=True, check_same_thread=False
        )
        connection.isolation_level = None  # `_begin` says BEGIN
        with closed_on_error(connection):
            try:
                for pragma in _PRAGMAS:
                    connection.execute(pragma)
            except UnicodeDecodeError as error:
                raise _undecodable(error) from error
        return connection

    def _check_format(self) -> None:
        with self.read() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            foreign = connection.exec_driver_sql(_FOREIGN_SCHEMA).scalar()
            if _is_blank(connection):
                raise _not_found(self.directory)
        if application != APPLICATION_ID:
            raise IndexFormatError(f"{self.file} is another program's database, not an index")
        if foreign is not None:
            raise IndexFormatError(f"{self.file} has a {foreign} in it, which no index has")
        if version > FORMAT_VERSION:
            raise IndexFormatError(
                f"{self.directory} has index format {version}; this semsearch reads up to "
                f"{FORMAT_VERSION}: update semsearch"
            )
        if version < FORMAT_VERSION:
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        if not all(os.access(place, os.W_OK) for place in (self.directory, self.file)):
            raise IndexFormatError(
                f"{self.directory} has index format {version}, which has to be brought to "
                f"{FORMAT_VERSION}, but cannot be written; copy it to where it can be"
            )
        # One that an older semsearch is writing must not change below its feet.
        with writer_lock(self.directory, wait=True), self.write() as connection:
            migrate(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except DBAPIError as error:
            raise _our_error(self.file, error.orig) from error
        except sqlite3.Error as error:
            raise _our_error(self.file, error) from error


def get_setting(connection: Connection, name: str, default: int | None = None) -> int:
    """A number that holds for the whole index.

    Raises:
        DamageError: it is missing and has no default, or is no number.
    """
    value = connection.scalar(_SETTING, {"name": name})
    if value is not None:
        return stored_json(value, int)
    if default is None:
        raise DamageError(f"the setting '{name}' is missing")
    return default


def put_setting(connection: Connection, name: str, value: int) -> None:
    """Remember a number for the whole index."""
    row = {"name": name, "value": json.dumps(value)}
    connection.execute(
        insert(settings).values(row).on_conflict_do_update(index_elements=["name"], set_=row)
    )


def _begin(connection: Connection) -> None:
    mode = connection.get_execution_options().get("semsearch_begin", "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {mode}")


def _check_error(context: ExceptionContext) -> None:
    if isinstance(context.original_exception, UnicodeDecodeError):
        raise _undecodable(context.original_exception)


def _undecodable(error: UnicodeDecodeError) -> DamageError:
    """SQLite's messages quote what they find, and Python cannot read those that quote damage."""
    return DamageError(error.object.decode("utf-8", "backslashreplace"))


def _is_blank(connection: Connection) -> bool:
    count: int = connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one()
    return count == 0


def _check_place(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise IndexFormatError(f"{directory} is a file, not an index directory")


def _not_found(directory: Path) -> IndexStoreError:
    if directory.is_dir() and any(
        entry.name.partition(".")[0] != "index" for entry in directory.iterdir()
    ):
        return IndexFormatError(
            f"{directory} is a directory, but no index: no {DATABASE_NAME} in it"
        )
    return IndexNotFoundError(
        f"no index at {directory}; make one with: semsearch index CORPUS --index {directory}"
    )


def _our_error(file: Path, error: BaseException | None) -> IndexStoreError:
    message = str(error)
    code = getattr(error, "sqlite_errorcode", None)
    if (
        code is None  # found by Python's module, text that is not UTF-8, or by ours
        or code & 0xFF in _DAMAGE_CODES
        or any(words in message for words in _DAMAGE_WORDS)
    ):
        return IndexFormatError(
            f"{file} is no SQLite database or a damaged one ({message}); "
            "take a copy of the index, or index the corpus anew"
        )
    if "locked" in message:
        return IndexBusyError(f"{file} is locked by another process")
    return IndexStoreError(f"{file}: {message}")
