"""The HTTP interface: routes translate requests to calls of `Index`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.util import find_spec
from os import PathLike
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from semsearch.arguments import check_path
from semsearch.errors import DocumentNotFoundError, MissingExtraError, SemsearchError
from semsearch.index import Index
from semsearch.records import Document
from semsearch.service.fields import described_fields
from semsearch.service.guard import Guard
from semsearch.service.maps import MapQuery, Maps
from semsearch.service.metrics import Measured, Metrics
from semsearch.service.pages import add_page
from semsearch.service.paths import EncodedPathRoute
from semsearch.service.problems import RESPONSES, problem, problem_of
from semsearch.service.requests import (
    DocumentRequest,
    SearchParameters,
    SearchRequest,
    SimilarRequest,
)
from semsearch.service.settings import Settings
from semsearch.service.worker import Worker, answers, with_warnings
from semsearch.version import __version__

Name = Annotated[str, PathParameter(description="The name of the index.")]
Id = Annotated[
    str,
    PathParameter(
        description="The id of the document. A slash in it may be sent as / or %2F; in an id "
        "that ends with /similar, only as %2F."
    ),
]

INDEX = "/v1/indexes/{name}"
DOCUMENT = INDEX + "/documents/{id:document}"
SIMILAR = INDEX + "/documents/{id:path}/similar"

WRITING = ["PUT", "DELETE"]

#: Request headers of the Model Context Protocol.
AGENT_HEADERS = ["Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"]


def create_app(
    indexes: Mapping[str, str | PathLike[str]],
    settings: Settings | None = None,
) -> FastAPI:
    """Create the service of some indexes, which are open while it runs.

    >>> from semsearch import Document, Index
    >>> from semsearch.service import create_app
    >>> with Index.create("birds", "hashing") as index:
    ...     _ = index.add([Document("a", "red bird"), Document("b", "blue fish")])
    >>> app = create_app({"birds": "birds"})

    Args:
        indexes: directories by the names they are served under.
        settings: limits and access; None for the defaults of `Settings`.
    """
    service = Service(indexes, settings or Settings())
    app = FastAPIOffline(
        title="semsearch",
        version=__version__,
        summary="Semantic search over passages.",
        lifespan=service.running,
        redoc_url=None,
        responses=RESPONSES,
        # The guard checks it; this describes it to clients.
        dependencies=[Depends(HTTPBearer(auto_error=False))] if service.settings.token else [],
    )
    service.add_routes(app)
    add_page(app)
    app.add_exception_handler(SemsearchError, _semsearch_error)
    app.add_exception_handler(StarletteHTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _fault)
    # The last one added runs first: pages of allowed origins can also read rejections.
    app.add_middleware(Guard, settings=service.settings)
    if service.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.settings.origins),
            allow_methods=["GET", "HEAD", "POST", *WRITING],
            allow_headers=["Authorization", "Content-Type", *AGENT_HEADERS],
        )
    app.add_middleware(Measured, metrics=service.metrics)
    return app


class Service:
    """The implementation of the routes.

    Args:
        indexes: directories by name.
        settings: limits and access.
    """

    def __init__(self, indexes: Mapping[str, str | PathLike[str]], settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.workers: dict[str, Worker] = {}  #: by the names of the indexes, while it runs
        self._indexes = indexes
        self._agents: ASGIApp | None = None
        self._maps = Maps(self.workers)

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """The lifespan, from loading the models to closing the indexes."""
        del app
        try:
            for name, path in self._indexes.items():
                self.workers[name] = Worker(
                    check_path("the index", path), self.metrics.encoded_together
                )
            for worker in self.workers.values():
                await worker.call(_warm)
            async with self._serving_agents():
                yield
        finally:
            await self._maps.close()
            while self.workers:
                self.workers.popitem()[1].close()

    @asynccontextmanager
    async def _serving_agents(self) -> AsyncIterator[None]:
        """Serve agents at /mcp, if the extra ``mcp`` is installed."""
        if find_spec("mcp") is None:
            yield
            return
        from semsearch.service.agents import agents_app, create_server

        server = create_server(self.workers)
        self._agents = agents_app(server)
        async with server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request at /mcp."""
        app = self._agents or problem_of(MissingExtraError("mcp", "mcp", "answering agents"))
        await app(scope, receive, send)

    def add_routes(self, app: FastAPI) -> None:
        """Register the routes."""
        # Not GET: the protocol allows a stream of events, but there would be none.
        app.router.routes.append(Route("/mcp", self, methods=["POST"]))
        app.router.route_class = EncodedPathRoute
        get, post, settings = app.get, app.post, self.settings
        found = (
            "The hits for a text; for several texts, a list of results. The member `warnings` says "
            "why a filter matches nothing, or what was not read of a query. At most "
            f"{settings.max_queries:,} texts of {settings.max_characters:,} characters, "
            f"{settings.max_hits:,} for `offset` + `k`, and {settings.max_answer:,} hits in all."
        )
        get("/health", summary="Whether the service is up")(self.health)
        get("/metrics", summary="Metrics for Prometheus", response_class=Response)(
            self.metrics.response
        )
        get("/v1/indexes", summary="The indexes and their contents")(self.indexes)
        get(INDEX + "/search", summary="Search an index", description=found)(self.search)
        post(INDEX + "/search", summary="Search an index, with a JSON body", description=found)(
            self.search_with_body
        )
        post(INDEX + "/compare", summary="Search with every space and with BM25")(self.compare)
        get(INDEX + "/fields", summary="The metadata fields, with values")(self.fields)
        get(INDEX + "/map", summary="The map of the passages")(self.map)
        post(
            INDEX + "/map/query",
            summary="Query the passages on the map with SQL",
            response_class=Response,
        )(self.query_map)
        get(SIMILAR, summary="Similar documents")(self.similar)
        post(SIMILAR, summary="Similar documents, for long filters")(self.similar_with_body)
        get(DOCUMENT, summary="A document")(self.document)
        if settings.writable:
            status = HTTPStatus.NO_CONTENT
            app.put(DOCUMENT, summary="Add or replace a document", status_code=status)(self.put)
            app.delete(DOCUMENT, summary="Remove a document", status_code=status)(self.delete)

    async def health(self) -> dict[str, str]:
        """Report that the service is up."""
        return {"status": "ok", "version": __version__}

    async def indexes(self) -> list[dict[str, Any]]:
        """Names, numbers of documents, spaces and fields of the indexes that can be read."""
        found = await answers(self.workers, _described)
        return [{"name": name, **described} for name, described in found.items()]

    async def search(self, name: Name, parameters: Annotated[SearchParameters, Query()]) -> Any:
        """The hits for a text; for several texts, a list of results."""
        texts = parameters.query
        request = (
            parameters.model_copy(update={"query": texts[0]}) if len(texts) == 1 else parameters
        )
        return await self.search_with_body(name, request)

    async def search_with_body(self, name: Name, request: SearchRequest) -> Any:
        """The hits for a text; for several texts, a list of results."""
        worker = self._worker(name)
        self._check_size(request)
        queries, options = request.queries(), request.options()
        found, warnings = await worker.search(queries, options)
        if warnings and len(queries) > 1:  # of one of them, perhaps
            each = [await worker.search([query], options) for query in queries]
        else:
            each = [([hits], warnings) for hits in found]
        answers = [with_warnings(hits.to_dict(), warned) for (hits,), warned in each]
        return answers[0] if isinstance(request.query, str) else answers

    async def compare(self, name: Name, request: SearchRequest) -> dict[str, Any]:
        """The hits for a text by each complete space and by words.

        `mode`, `space`, `fusion` and `dense_weight` are ignored.
        """
        worker, queries = self._worker(name), request.queries()
        self._check_size(request)
        if len(queries) != 1:
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, "compare takes one query")
        spaces = await worker.call(Index.spaces)
        systems: dict[str, dict[str, str | None]] = {
            space.name: {"mode": "semantic", "space": space.name}
            for space in spaces
            if space.complete
        }
        systems["bm25"] = {"mode": "bm25", "space": None}
        found: dict[str, list[dict[str, Any]]] = {}
        warnings: dict[str, None] = {}  # a set that keeps the order
        common = request.options()
        del common["fusion"], common["dense_weight"]
        for system, options in systems.items():
            (hits,), warned = await worker.search(queries, common | options)
            found[system] = [hit.to_dict() for hit in hits]
            warnings |= dict.fromkeys(warned)
        return with_warnings({"query": queries[0], "systems": found}, list(warnings))

    async def fields(self, name: Name) -> list[dict[str, Any]]:
        """Names, kinds, most frequent values, and bounds of fields."""
        return await self._worker(name).call(described_fields)

    async def map(self, name: Name) -> dict[str, Any]:
        """The number of passages, the table and its columns, and the extent of the points."""
        self._worker(name)
        return await self._maps.describe(name)

    async def query_map(self, name: Name, query: MapQuery) -> Response:
        """Rows for Embedding Atlas, as an Arrow IPC stream or JSON."""
        self._worker(name)
        return await self._maps.query(name, query)

    async def similar(
        self,
        name: Name,
        id: Id,  # noqa: A002
        parameters: Annotated[SimilarRequest, Query()],
    ) -> dict[str, Any]:
        """The documents nearest to a document, without the document itself."""
        return await self.similar_with_body(name, id, parameters)

    async def similar_with_body(
        self,
        name: Name,
        id: Id,  # noqa: A002
        request: SimilarRequest,
    ) -> dict[str, Any]:
        """The documents nearest to a document, without the document itself."""
        worker = self._worker(name)
        self._check_size(SearchRequest(query="", k=request.k))
        await worker.call(lambda index: _document(index, id))
        found, warnings = await worker.more_like(id, **request.model_dump())
        return with_warnings({"id": id, "hits": [hit.to_dict() for hit in found]}, warnings)

    async def document(self, name: Name, id: Id) -> dict[str, Any]:  # noqa: A002
        """Id, title, text and metadata."""
        found = await self._worker(name).call(lambda index: _document(index, id))
        return {
            "id": found.id,
            "title": found.title,
            "text": found.text,
            "metadata": dict(found.metadata),
        }

    async def put(self, name: Name, id: Id, request: DocumentRequest) -> None:  # noqa: A002
        """Add the document; it can be found when this returns."""
        document = Document(id, request.text, request.title, request.metadata)
        await self._worker(name).call(lambda index: index.add([document]))

    async def delete(self, name: Name, id: Id) -> None:  # noqa: A002
        """Delete the document; it cannot be found when this returns."""
        await self._worker(name).call(lambda index: _delete(index, id))

    def _worker(self, name: str) -> Worker:
        if name not in self.workers:
            known = ", ".join(self.workers)
            raise HTTPException(HTTPStatus.NOT_FOUND, f"no index '{name}' (indexes: {known})")
        return self.workers[name]

    def _check_size(self, request: SearchRequest) -> None:
        """Check the limits of a search.

        Raises:
            HTTPException: one is exceeded.
        """
        settings, queries = self.settings, request.queries()
        limits = {
            f"a request must have 1 to {settings.max_queries} queries": (
                0 < len(queries) <= settings.max_queries
            ),
            f"a query can have at most {settings.max_characters:,} characters": all(
                len(query) <= settings.max_characters for query in queries
            ),
            f"offset + k can be at most {settings.max_hits:,}": (
                request.offset + request.k <= settings.max_hits
            ),
            f"a request can ask for at most {settings.max_answer:,} hits in all": (
                len(queries) == 1 or len(queries) * request.k <= settings.max_answer
            ),
        }
        for detail, is_met in limits.items():
            if not is_met:
                raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


async def _semsearch_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SemsearchError)  # noqa: S101 - registered for this class
    return problem_of(error)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StarletteHTTPException)  # noqa: S101
    return problem(error.status_code, str(error.detail), dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    kind = request.headers.get("content-type", "none").partition(";")[0]
    reasons = []
    for found in error.errors():
        part, *path = found["loc"]
        if part == "body" and not path and not kind.endswith("json"):
            detail = f"send JSON with Content-Type: application/json, not {kind[:100]}"
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
        if found["type"] == "json_invalid":
            reasons.append(f"the body is not JSON: {found['ctx']['error']} (character {path[0]})")
        else:
            reasons.append(f"{'.'.join(map(str, path)) or part}: {found['msg']}")
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(reasons))


async def _fault(request: Request, error: Exception) -> JSONResponse:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of the service")


def _warm(index: Index) -> None:
    """Load the model before the first query."""
    if len(index) and index.space().complete:
        index.search("warm", 1)


def _described(index: Index) -> dict[str, Any]:
    info = index.info()
    return {
        "documents": info.documents,
        "passages": info.passages,
        "spaces": [
            {"name": space.name, "encoder": space.spec, "dimension": space.dimension}
            for space in info.spaces
        ],
        "fields": {field.name: list(field.kinds) for field in info.fields},
    }


def _document(index: Index, name: str) -> Document:
    found = index.get(name)
    if found is None:
        raise _no_document(name)
    return found


def _delete(index: Index, name: str) -> None:
    if name not in index:
        raise _no_document(name)
    index.delete([name])


def _no_document(name: str) -> DocumentNotFoundError:
    return DocumentNotFoundError(f"no document '{name}'")
