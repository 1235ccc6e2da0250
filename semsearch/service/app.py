"""The HTTP interface: routes translate requests to calls of `Index`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from importlib.util import find_spec
from os import PathLike
from threading import Thread
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi import Path as PathParameter
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from semsearch import __version__
from semsearch.errors import DocumentNotFoundError, MissingExtraError, SemsearchError
from semsearch.index import Index
from semsearch.records import Document
from semsearch.service.documents import html_of
from semsearch.service.guard import guard
from semsearch.service.maps import colours_of, map_file_of, map_of
from semsearch.service.nearest import nearest_filter
from semsearch.service.overview import overview_of
from semsearch.service.pages import add_page
from semsearch.service.problems import PROBLEM, RESPONSES, add_problems, problem_of
from semsearch.service.requests import (
    MAX_ANSWER,
    MAX_CHARACTERS,
    MAX_HITS,
    MAX_PAGE,
    MAX_QUERIES,
    DocumentRequest,
    NewDocument,
    QueryParameters,
    SearchRequest,
    SimilarRequest,
)
from semsearch.service.settings import Settings
from semsearch.service.worker import Worker, of_each, with_warnings
from semsearch.service.writing import BODY, add_items, parse_items
from semsearch.storage.address import place
from semsearch.storage.interface import FACET_DOCUMENTS, Selection, parse_filter

Name = Annotated[str, PathParameter(description="The name of the index.")]
Id = Annotated[str, Query(description="The id of the document.")]
OptionalId = Annotated[str | None, Query(description="The id of one document.")]
Where = Annotated[str | None, Query(description="A filter, such as: year >= 1990.")]

INDEX = "/v1/indexes/{name}"
LIMITS = (
    f"At most {MAX_QUERIES:,} texts of {MAX_CHARACTERS:,} characters, {MAX_HITS:,} for `offset` + "
    f"`k`, and {MAX_ANSWER:,} hits in all. The member `warnings` says why a filter matches "
    "nothing, or what was not read of a query."
)


def create_app(
    indexes: Mapping[str, str | PathLike[str]], settings: Settings | None = None
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
    settings = settings or Settings()
    service = Service(indexes)
    app = FastAPIOffline(
        title="semsearch",
        version=__version__,
        summary="Semantic search over passages.",
        lifespan=service.running,
        redoc_url=None,
        responses=RESPONSES,
        generate_unique_id_function=lambda route: route.name,  # generated clients show these names
        max_body_size=settings.max_body,
        # The guard checks it; this describes it to clients.
        dependencies=[Depends(HTTPBearer(auto_error=False))] if settings.token else [],
    )
    service.add_routes(app, writable=settings.writable)
    _name_schemas(app)
    add_page(app)
    add_problems(app)
    guard(app, settings)
    return app


def _name_schemas(app: FastAPI) -> None:
    """Describe what routes refer to, but FastAPI does not derive from them."""
    derived = app.openapi

    def described() -> dict[str, Any]:
        schema = derived()
        schemas = schema["components"]["schemas"]
        new = NewDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= new.pop("$defs") | {"Problem": PROBLEM, "NewDocument": new}
        return schema

    app.openapi = described  # type: ignore[method-assign]


class Service:
    """The implementation of the routes. Those that are no coroutines run in a pool of threads.

    Args:
        indexes: directories by name.
    """

    def __init__(self, indexes: Mapping[str, str | PathLike[str]]) -> None:
        self.workers: dict[str, Worker] = {}  #: by the names of the indexes, while it runs
        self._indexes = indexes
        self._agents: ASGIApp | None = None

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """The lifespan, from loading the models to closing the indexes."""
        del app
        try:
            for name, path in self._indexes.items():
                self.workers[name] = Worker(place(path))
            for worker in self.workers.values():
                await worker.call(_warm)
            workers = list(self.workers.values())
            Thread(target=_count_fields, args=[workers], daemon=True).start()
            async with self._serving_agents():
                yield
        finally:
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

    def add_routes(self, app: FastAPI, *, writable: bool) -> None:
        """Register the routes."""
        # Not GET: the protocol allows a stream of events, but there would be none.
        app.router.routes.append(Route("/mcp", self, methods=["POST"]))
        get, post, done = app.get, app.post, HTTPStatus.NO_CONTENT
        search, similar, document = f"{INDEX}/search", f"{INDEX}/similar", f"{INDEX}/documents"
        get("/health", summary="Whether the service is up")(self.health)
        get("/v1/indexes", summary="The indexes and their contents")(self.indexes)
        get(search, summary="Search an index for a text", description=LIMITS)(self.search)
        post(search, summary="Search an index, with a JSON body", description=LIMITS)(
            self.search_with_body
        )
        get(similar, summary="Similar documents")(self.similar)
        post(similar, summary="Similar documents, with a JSON body")(self.similar_with_body)
        post(f"{INDEX}/compare", summary="Search by meaning, by words and by both")(self.compare)
        get(f"{INDEX}/overview", summary="What an index is about")(self.overview)
        get(f"{INDEX}/fields", summary="The metadata fields, with values")(self.fields)
        get(f"{INDEX}/fields/values", summary="Texts of a field")(self.field_texts)
        get(f"{INDEX}/map", summary="The map of the passages")(self.map)
        get(f"{INDEX}/map/colours", summary="A field on the map")(self.map_colours)
        get(f"{INDEX}/map.parquet", summary="The map as a file", response_class=Response)(
            self.map_file
        )
        get(document, summary="A document, or a page of documents")(self.documents)
        writing = [] if writable else [Depends(_refuse_writing)]
        app.post(document, summary="Add documents", dependencies=writing, openapi_extra=BODY)(
            self.add
        )
        app.put(
            document, summary="Add or replace a document", dependencies=writing, status_code=done
        )(self.put)
        app.delete(document, summary="Remove documents", dependencies=writing)(self.delete)

    async def health(self) -> dict[str, str]:
        """Report that the service is up."""
        return {"status": "ok", "version": __version__}

    def indexes(self) -> list[dict[str, Any]]:
        """Names, numbers of documents, spaces and fields of the indexes that can be read."""
        found = of_each(self.workers, _described)
        return [{"name": name, **described} for name, described in found.items()]

    async def search(
        self, name: Name, parameters: Annotated[QueryParameters, Query()]
    ) -> dict[str, Any]:
        """The hits for a text."""
        found, warnings = await self._worker(name).search([parameters.query], parameters.options())
        return with_warnings(found[0].to_dict(), warnings)

    async def search_with_body(self, name: Name, request: SearchRequest) -> Any:
        """The hits for a text; for several texts, a list of results."""
        queries = [request.query] if isinstance(request.query, str) else request.query
        found, warnings = await self._worker(name).search(queries, request.options())
        answers = [with_warnings(hits.to_dict(), warnings) for hits in found]
        return answers[0] if isinstance(request.query, str) else answers

    async def compare(self, name: Name, request: QueryParameters) -> dict[str, Any]:
        """The hits for a text by each complete space, by words, and by both.

        `mode`, `space` and `dense_weight` are ignored.
        """
        worker = self._worker(name)
        common = request.options()
        del common["dense_weight"]
        found: dict[str, list[dict[str, Any]]] = {}
        warnings: dict[str, None] = {}  # a set that keeps the order
        systems = await asyncio.to_thread(lambda: worker.index.info().systems)
        for system in (*systems, "hybrid"):
            is_space = system not in ("bm25", "hybrid")
            common["mode"] = "semantic" if is_space else system
            common["space"] = system if is_space else None
            (hits,), warned = await worker.search([request.query], common)
            found[system] = [hit.to_dict() for hit in hits]
            warnings |= dict.fromkeys(warned)
        return with_warnings({"query": request.query, "systems": found}, list(warnings))

    def fields(self, name: Name, where: Where = None) -> dict[str, Any]:
        """The number of documents, and their fields: names, kinds, texts, bounds, histograms.

        `nearest` is a filter that matches, near one that matches nothing.
        """
        return _field_values(self._worker(name).index, where)

    def field_texts(
        self,
        name: Name,
        field: Annotated[str, Query(description="The name of the field.")],
        typed: Annotated[str, Query(description="What the texts contain.")] = "",
    ) -> list[list[str | int]]:
        """Up to 20 texts of a field, and how often they occur; those that begin so come first."""
        with self._worker(name).index.read() as state:
            return [list(found) for found in state.texts_like(field, typed)]

    def overview(self, name: Name, where: Where = None) -> dict[str, Any]:
        """The groups of the map, queries to try, and the newest documents."""
        return overview_of(self._worker(name).index, where)

    def map(self, name: Name) -> dict[str, Any]:
        """The groups and points of the newest map."""
        return map_of(name, self._worker(name).index)

    def map_colours(
        self, name: Name, field: Annotated[str, Query(description="The name of the field.")]
    ) -> dict[str, Any]:
        """The most frequent values of a field, or ranges, and the place of that of each point."""
        return colours_of(name, self._worker(name).index, field)

    def map_file(self, name: Name) -> Response:
        """The points, passages and metadata as Parquet, for Embedding Atlas."""
        content = map_file_of(name, self._worker(name).index)
        disposition = {"Content-Disposition": 'attachment; filename="map.parquet"'}
        return Response(content, media_type="application/vnd.apache.parquet", headers=disposition)

    async def similar(
        self, name: Name, parameters: Annotated[SimilarRequest, Query()]
    ) -> dict[str, Any]:
        """The documents nearest to a document, without the document itself."""
        return await self.similar_with_body(name, parameters)

    async def similar_with_body(self, name: Name, request: SimilarRequest) -> dict[str, Any]:
        """The documents nearest to a document, without the document itself."""
        worker, options = self._worker(name), request.model_dump(exclude={"id"})
        await asyncio.to_thread(_document, worker.index, request.id)
        found, warnings = await worker.more_like(request.id, **options)
        return with_warnings({"id": request.id, "hits": [hit.to_dict() for hit in found]}, warnings)

    def documents(
        self,
        name: Name,
        id: OptionalId = None,  # noqa: A002
        where: Where = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="The size of a page.")] = 100,
        offset: Annotated[
            int, Query(ge=0, lt=1 << 63, description="The number of documents to skip.")
        ] = 0,
        html: Annotated[bool, Query(description="Add a Markdown file as HTML.")] = False,
        start: Annotated[int, Query(ge=0, description="Where the passage to mark begins.")] = 0,
        end: Annotated[int, Query(ge=0, description="Where it ends.")] = 0,
    ) -> dict[str, Any]:
        """With an id, its document: id, title, text and metadata; for Markdown, HTML if wanted.

        Without, a page of all documents or of those that match a filter, in the order of their
        addition; `next` is the offset of the next page, `total` the number on all pages.
        """
        index = self._worker(name).index
        if id is None:
            return _page(index, where, limit, offset)
        found = _document(index, id)
        return _as_json(found) | ({"html": html_of(found, start, end)} if html else {})

    async def add(self, name: Name, request: Request) -> dict[str, Any]:
        """Add or replace one document, a list of documents, or JSON lines.

        They can be found when this returns. Items that cannot be used are answered by an `error`;
        the others are added.
        """
        worker, kind = self._worker(name), request.headers.get("content-type", "")
        items = parse_items(await request.body(), kind)
        return await worker.call(lambda index: add_items(index, items))

    async def put(self, name: Name, id: Id, request: DocumentRequest) -> None:  # noqa: A002
        """Add the document; it can be found when this returns."""
        document = Document(id, request.text, request.title, request.metadata)
        await self._worker(name).call(lambda index: index.add([document]))

    async def delete(
        self,
        name: Name,
        id: OptionalId = None,  # noqa: A002
        where: Where = None,
    ) -> dict[str, int]:
        """Delete a document, or all that match a filter; they cannot be found when this returns."""
        ids = None if id is None else [id]
        return {"deleted": await self._worker(name).call(lambda index: index.delete(ids, where))}

    def _worker(self, name: str) -> Worker:
        if name not in self.workers:
            known = ", ".join(self.workers)
            raise HTTPException(HTTPStatus.NOT_FOUND, f"no index '{name}' (indexes: {known})")
        return self.workers[name]


def _refuse_writing() -> None:
    raise HTTPException(
        HTTPStatus.FORBIDDEN, "this service is read-only; start it with: semsearch serve --writable"
    )


def _warm(index: Index) -> None:
    """Load the model before the first query."""
    if len(index) and index.space().complete:
        index.search("warm", 1)


def _count_fields(workers: Sequence[Worker]) -> None:
    """Count the values of fields before the first page asks for them."""
    for worker in workers:
        with suppress(SemsearchError):
            _field_values(worker.index)


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


def _field_values(index: Index, where: str | None = None) -> dict[str, Any]:
    with index.read() as state:
        condition = None if where is None else parse_filter(state, where)
        found = [field._asdict() for field in state.field_values(condition)]
        documents = state.count(Selection(condition=condition))
        nearest = None
        if condition is not None and not documents:
            nearest = nearest_filter(state, condition)
        return {
            "documents": documents,
            "sampled": state.count() > FACET_DOCUMENTS,
            "fields": found,
            "nearest": nearest,
        }


def _page(index: Index, where: str | None, limit: int, offset: int) -> dict[str, Any]:
    with index.read() as state:
        selection = Selection(condition=None if where is None else parse_filter(state, where))
        ids, total = state.ids(selection, limit, offset), state.count(selection)
        found = state.documents(ids)
    following = offset + len(ids)
    return {
        "total": total,
        "next": following if following < total else None,
        "documents": [_as_json(found[name]) for name in ids],
    }


def _as_json(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }


def _document(index: Index, name: str) -> Document:
    found = index.get(name)
    if found is None:
        raise DocumentNotFoundError(f"no document '{name}'")
    return found
