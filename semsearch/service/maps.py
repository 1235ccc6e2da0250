"""Maps for Embedding Atlas: a table of passages, queried with SQL by the page."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from uuid import uuid4

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from semsearch.arguments import Address
from semsearch.errors import MissingExtraError
from semsearch.explore.map import map_file, open_map
from semsearch.explore.map_table import ROW, X, Y, map_table
from semsearch.index import Index

if TYPE_CHECKING:
    import duckdb
    import pyarrow

TABLE = "passages"
#: The statements of Embedding Atlas, which adds columns for colours.
ALLOWED = {"SELECT", "EXPLAIN", "CREATE", "ALTER", "UPDATE"}
#: The memory limit of the queries on one map.
MEMORY = "1GB"
#: The most rows of a result.
MAX_ROWS = 1_000_000

#: Sizes and times of files.
Version: TypeAlias = tuple[tuple[int, int], ...]


class MapQuery(BaseModel):
    """A query of Embedding Atlas."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["arrow", "json", "exec"]
    sql: str
    version: str | None = Field(default=None, description="Of the map that is asked.")


class OpenMap(NamedTuple):
    """A map that pages are showing."""

    version: Version
    database: duckdb.DuckDBPyConnection
    about: dict[str, Any]
    lock: asyncio.Lock  #: one query at a time, since pages that add columns would conflict


class Maps:
    """The maps of the served indexes, read on first use."""

    def __init__(self) -> None:
        self._open: dict[str, OpenMap] = {}
        self._opening = Lock()

    def opened(self, name: str, index: Index) -> OpenMap:
        """The newest map of an index.

        Raises:
            HTTPException: there is no map (404), or it is too large (503).
            MissingExtraError: Embedding Atlas is not installed.
        """
        if find_spec("embedding_atlas") is None:
            raise MissingExtraError("embedding-atlas", "map", "a map")
        with self._opening:
            version = _version(index)
            if name not in self._open or self._open[name].version != version:
                self._open[name] = _opened(name, index, version)
            return self._open[name]

    async def query(self, name: str, index: Index, query: MapQuery) -> Response:
        """The result of a query: an Arrow IPC stream, JSON, or nothing.

        Raises:
            HTTPException: the query is invalid (422) or of another version of the map (409), there
                is no map (404), or it is too large (503).
            MissingExtraError: Embedding Atlas is not installed.
        """
        if name not in self._open:  # the page was loaded before this service was started
            await asyncio.to_thread(self.opened, name, index)
        opened = self._open[name]
        if query.version not in (None, opened.about["version"]):
            raise HTTPException(HTTPStatus.CONFLICT, "the map has changed; open it again")
        async with opened.lock:
            cursor = opened.database.cursor()
            try:
                return await asyncio.to_thread(_answer, cursor, query)
            except asyncio.CancelledError:  # the client has gone, or it took too long
                cursor.interrupt()
                raise

    def close(self) -> None:
        """Close all maps."""
        while self._open:
            self._open.popitem()[1].database.close()


def _version(index: Index) -> Version:
    """Sizes and times of the files that a map is read from."""
    if isinstance(index.path, Address):
        return ()
    database = index.path / "index.sqlite"
    maps = [map_file(index.path, space.name) for space in index.spaces()]
    files = [file for file in (*maps, database, Path(f"{database}-wal")) if file.exists()]
    states = [file.stat() for file in files]
    return tuple((state.st_size, state.st_mtime_ns) for state in states)


def _opened(name: str, index: Index, version: Version) -> OpenMap:
    import duckdb

    found = open_map(index)
    if found is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"'{name}' has no map; make one with: semsearch map --index DIRECTORY",
        )
    table, fields = map_table(index, found)
    database = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY,
            "temp_directory": "",  # queries that need more memory fail
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    try:
        database.from_arrow(table).create(TABLE)
    except duckdb.OutOfMemoryException:
        detail = f"the map is too large: its {table.num_rows:,} passages need more than {MEMORY}"
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, detail) from None
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    about = {
        "version": uuid4().hex,  # a page that continues would lack the columns that it has added
        "space": found.space,
        "passages": table.num_rows,
        "of": index.info().passages,
        "fields": fields,
        "data": {"table": TABLE, "id": ROW, "projection": {"x": X, "y": Y}, "text": "text"},
        "shown": _shown(table),
    }
    return OpenMap(version, database, about, asyncio.Lock())


def _shown(table: pyarrow.Table) -> dict[str, float]:
    """The initial viewport of the map: all but the outermost points."""
    import numpy

    points = numpy.stack([table[X].to_numpy(), table[Y].to_numpy()])
    if not points.size:
        return {"x": 0.0, "y": 0.0, "width": 1.0, "height": 1.0}
    low, high = numpy.percentile(points, (1, 99), axis=1)
    (x, y), (width, height) = ((low + high) / 2).tolist(), (high - low).tolist()
    return {"x": x, "y": y, "width": width or 1.0, "height": height or 1.0}


def _answer(cursor: duckdb.DuckDBPyConnection, query: MapQuery) -> Response:
    import duckdb
    import pyarrow

    try:
        statements = cursor.extract_statements(query.sql)
        if forbidden := {statement.type.name for statement in statements} - ALLOWED:
            listed = ", ".join(sorted(forbidden))
            raise _unprocessable(f"statements not allowed on a map: {listed}")
        found = cursor.sql(query.sql)
        if query.type == "exec" or found is None:
            return Response("{}", media_type="application/json")
        rows = found.limit(MAX_ROWS + 1).to_arrow_table()
    except duckdb.Error as error:
        raise _unprocessable(str(error)) from error
    finally:
        cursor.close()
    if rows.num_rows > MAX_ROWS:
        raise _unprocessable("the result is too large; add a LIMIT")
    if query.type == "json":
        records = rows.to_pandas().to_json(orient="records", date_format="iso")
        return Response(records, media_type="application/json")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return Response(sink.getvalue().to_pybytes(), media_type="application/vnd.apache.arrow.stream")


def _unprocessable(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
