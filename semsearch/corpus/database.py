"""Reads the rows that a query selects from a database, through SQLAlchemy."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.corpus.sources import file_size, shown_url
from semsearch.corpus.table import Row, Table
from semsearch.errors import CorpusError, MissingExtraError, first_line

if TYPE_CHECKING:
    from sqlalchemy import CursorResult, Engine

_ROWS_AT_ONCE = 1_000


@contextmanager
def open_query(location: Path | str, query: str) -> Iterator[Table]:
    """The rows of a query to an SQLite file or a database URL, read lazily; nothing is written.

    Raises:
        MissingExtraError: the extra ``files`` with PostgreSQL's driver is not installed.
        CorpusError: the database cannot be reached, or rejects the query.
    """
    name = shown_url(location) if isinstance(location, str) else str(location)
    with ExitStack() as stack:
        with _translated_errors(name):
            with warnings.catch_warnings(action="ignore"):  # about parameters, such as mode=ro
                engine = _engine(location)
            stack.callback(engine.dispose)
            options = {"stream_results": True, "yield_per": _ROWS_AT_ONCE, "no_parameters": True}
            if engine.dialect.name == "postgresql":
                options["postgresql_readonly"] = True
            connection = stack.enter_context(engine.connect()).execution_options(**options)
            result = connection.exec_driver_sql(query)
            stack.callback(result.close)
            if not result.returns_rows:
                raise CorpusError(f"{name}: --sql selects no rows; it has to be a SELECT")
            columns = list(result.keys())
        rows = _rows(result, columns, name)
        table = Table(name, columns, rows, remark=f"from {engine.dialect.name}")
        if not table.head:
            raise CorpusError(f"{name}: the query selects no rows")
        yield table


def _engine(location: Path | str) -> Engine:
    from sqlalchemy import create_engine, make_url

    if isinstance(location, Path):
        file_size(location)  # raises if the file does not exist
        return create_engine("sqlite://", creator=lambda: _read_only(location))
    url = make_url(location)
    if url.get_backend_name() == "sqlite":
        return _engine(Path(url.database or ""))
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    try:
        return create_engine(url)
    except ImportError as error:
        if url.drivername.endswith("+psycopg"):
            raise MissingExtraError("psycopg", "files", "reading PostgreSQL") from None
        raise CorpusError(f"{shown_url(location)} needs a driver: {first_line(error)}") from None


def _read_only(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # Bytes that are not UTF-8 make a bad row, and do not fail the query.
    connection.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")
    return connection


def _rows(result: CursorResult[object], columns: list[str], name: str) -> Iterator[Row]:
    with _translated_errors(name):
        for number, cells in enumerate(result, 1):
            yield Row(f"{name}, row {number}", dict(zip(columns, cells, strict=True)))


@contextmanager
def _translated_errors(name: str) -> Iterator[None]:
    """Turn exceptions of SQLAlchemy and drivers into a CorpusError that names the database."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    # ValueError: a parameter that is not a number, or text that cannot be decoded.
    except (SQLAlchemyError, ValueError) as error:
        reason = first_line(getattr(error, "orig", None) or error)
        raise CorpusError(f"{name}: {reason}") from None  # it may quote the password
