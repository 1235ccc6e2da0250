"""Maps for Embedding Atlas: a table of passages, queried with SQL by the page."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import uuid4

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from semsearch.addresses import Address
from semsearch.errors import MissingExtraError
from semsearch.explore.map import map_file, open_map
from semsearch.explore.map_table import ROW, X, Y, map_table
from semsearch.index import Index
from semsearch.service.worker import Worker

if TYPE_CHECKING:
    import duckdb
    import pyarrow

TABLE = "passages"
#: The statements of Embedding Atlas, which adds columns for colours.
ALLOWED = {"SELECT", "EXPLAIN", "CREATE", "ALTER", "UPDATE"}
#: The memory limit of the queries on one map.
MEMORY = "1GB"
#: The maximum size of a result, in JSON and in Arrow's format.
MAX_ROWS, MAX_BYTES = 1_000_000, 1 << 30
#: How long to wait for an interrupted query before it is interrupted again.
INTERRUPT_SECONDS = 0.1


class MapQuery(BaseModel):
    """A query of Embedding Atlas."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["arrow", "json", "exec"]
    sql: str
    version: str | None = Field(default=None, description="Of the map that is asked.")


class Version(NamedTuple):
    """The files that a map was created from: name, size, modification time."""

    files: tuple[tuple[str, int, int], ...]


class OpenMap(NamedTuple):
    """A map that pages are showing."""

    version: Version
    database: duckdb.DuckDBPyConnection
    about: dict[str, Any]
    checksum: Checksum
    lock: asyncio.Lock  #: one query at a time, since pages that add columns would conflict


class Checksum(NamedTuple):
    """A query whose result changes with the passages, and its result."""

    sql: str
    value: Any


class Maps:
    """The maps of the served indexes, read on first use.

    Args:
        workers: by the names of the indexes.
    """

    def __init__(self, workers: dict[str, Worker]) -> None:
        self._workers = workers
        self._open: dict[str, OpenMap] = {}
        self._ending: set[asyncio.Task[Response]] = set()  # queries that were interrupted

    async def describe(self, name: str) -> dict[str, Any]:
        """The size, table, columns and extent of a map.

        Raises:
            HTTPException: there is no map (404), or it is too large (503).
            MissingExtraError: Embedding Atlas is not installed.
        """
        if find_spec("embedding_atlas") is None:
            raise MissingExtraError("embedding-atlas", "map", "a map")

        def open_now(index: Index) -> OpenMap:
            """In the thread of the index, which finishes when its request has taken too long."""
            version = _version(index)
            opened = self._open.get(name)
            if opened is None or opened.version != version:
                opened = _opened(index, version)
                if opened is None:
                    raise HTTPException(
                        HTTPStatus.NOT_FOUND,
                        f"'{name}' has no map; make one with: semsearch map --index DIRECTORY",
                    )
                self._open[name] = opened
            return opened

        return (await self._workers[name].call(open_now)).about

    async def query(self, name: str, query: MapQuery) -> Response:
        """The result of a query: an Arrow IPC stream, JSON, or nothing.

        Raises:
            HTTPException: the query is invalid (422) or of another version of the map (409), there
                is no map (404), or it is too large (503).
            MissingExtraError: Embedding Atlas is not installed.
        """
        if name not in self._open:  # the page was loaded before this service was started
            await self.describe(name)
        opened = self._open[name]
        if query.version not in (None, opened.about["version"]):
            raise HTTPException(HTTPStatus.CONFLICT, "the map has changed; open it again")
        task = asyncio.create_task(_query(opened, query))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:  # the client is gone, or it took too long
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            raise

    async def close(self) -> None:
        """Close all maps."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        while self._open:
            self._open.popitem()[1].database.close()


async def _query(opened: OpenMap, query: MapQuery) -> Response:
    """The result of a query; when cancelled, it ends with the query, which DuckDB may delay."""
    async with opened.lock:
        cursor = opened.database.cursor()
        answer = asyncio.get_running_loop().run_in_executor(
            None, _answer, cursor, query, opened.checksum
        )
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            while not answer.done():
                cursor.interrupt()  # again, as the query may not have started yet
                await asyncio.wait([answer], timeout=INTERRUPT_SECONDS)
            answer.exception()  # or asyncio would log that nobody asked for it
            raise


def _version(index: Index) -> Version:
    found = []
    if isinstance(index.path, Address):
        return Version(())
    database = index.path / "index.sqlite"
    maps = [map_file(index.path, space.name) for space in index.spaces()]
    for file in (*maps, database, Path(f"{database}-wal")):
        if file.exists():
            state = file.stat()
            found.append((file.name, state.st_size, state.st_mtime_ns))
    return Version(tuple(found))


def _opened(index: Index, version: Version) -> OpenMap | None:
    import duckdb

    found = open_map(index)
    if found is None:
        return None
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
        "data": {
            "table": TABLE,
            "id": ROW,
            "projection": {"x": X, "y": Y},
            "text": "text",
        },
        "shown": _shown(table),
    }
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in table.column_names)
    sql = f"SELECT count(*), sum(hash({columns})::HUGEINT) FROM {TABLE}"  # noqa: S608 - quoted
    checksum = Checksum(sql, database.execute(sql).fetchall())
    return OpenMap(version, database, about, checksum, asyncio.Lock())


def _shown(table: pyarrow.Table) -> dict[str, float]:
    """The initial viewport of the map: all but the outermost points."""
    import numpy

    points = numpy.stack([table[X].to_numpy(), table[Y].to_numpy()])
    if not points.size:
        return {"x": 0.0, "y": 0.0, "width": 1.0, "height": 1.0}
    low, high = numpy.percentile(points, (1, 99), axis=1)
    (x, y), (width, height) = ((low + high) / 2).tolist(), (high - low).tolist()
    return {"x": x, "y": y, "width": width or 1.0, "height": height or 1.0}


def _answer(cursor: duckdb.DuckDBPyConnection, query: MapQuery, passages: Checksum) -> Response:
    import duckdb

    try:
        statements = cursor.extract_statements(query.sql)
        if forbidden := {statement.type.name for statement in statements} - ALLOWED:
            listed = ", ".join(sorted(forbidden))
            raise _unprocessable(f"statements not allowed on a map: {listed}")
        if all(statement.type.name == "SELECT" for statement in statements):
            return _response(cursor.sql(query.sql), query)
        cursor.begin()
        response = _response(cursor.sql(query.sql), query)
        if cursor.sql(passages.sql).fetchall() != passages.value:
            raise _unprocessable("the passages of a map cannot be changed")
        cursor.commit()
        return response
    except duckdb.Error as error:
        raise _unprocessable(str(error)) from error
    finally:
        cursor.close()  # which rolls back what was not committed


def _response(found: duckdb.DuckDBPyRelation | None, query: MapQuery) -> Response:
    import pyarrow

    if query.type == "exec" or found is None:
        return Response("{}", media_type="application/json")
    if query.type == "json":
        frame = found.limit(MAX_ROWS + 1).df()
        if len(frame) > MAX_ROWS:
            raise _too_large()
        try:
            records = frame.to_json(orient="records", date_format="iso")
        except (OverflowError, TypeError, ValueError) as error:
            raise _unprocessable(f"the result cannot be written as JSON: {error}") from error
        return Response(records, media_type="application/json")
    reader = found.to_arrow_reader()
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            if sink.tell() > MAX_BYTES:
                raise _too_large()
    return Response(sink.getvalue().to_pybytes(), media_type="application/vnd.apache.arrow.stream")


def _too_large() -> HTTPException:
    return _unprocessable("the result is too large; add a LIMIT")


def _unprocessable(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
