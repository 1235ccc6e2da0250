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

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi import Path as PathParameter
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

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

Id = Annotated[str, Query(description="The id of the document.")]
OptionalId = Annotated[str | None, Query(description="The id of one document.")]
Where = Annotated[str | None, Query(description="A filter, such as: year >= 1990.")]

INDEX = "/v1/indexes/{name}"
LIMITS = (
    f"At most {MAX_QUERIES:,} texts of {MAX_CHARACTERS:,} characters, {MAX_HITS:,} for `offset` + "
    f"`k`, and {MAX_ANSWER:,} hits in all. The member `warnings` says why a filter matches "
    "nothing, or what was not read of a query."
)

routes = APIRouter()


async def _opened(
    name: Annotated[str, PathParameter(description="The name of the index.")], request: Request
) -> Worker:
    """The worker of an index."""
    workers: dict[str, Worker] = request.app.state.workers
    if name not in workers:
        known = ", ".join(workers)
        raise HTTPException(HTTPStatus.NOT_FOUND, f"no index '{name}' (indexes: {known})")
    return workers[name]


async def _refuse_if_read_only(request: Request) -> None:
    if not request.app.state.writable:
        detail = "this service is read-only; start it with: semsearch serve --writable"
        raise HTTPException(HTTPStatus.FORBIDDEN, detail)


Opened = Annotated[Worker, Depends(_opened)]
WRITING = [Depends(_refuse_if_read_only)]


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
    app = FastAPIOffline(
        title="semsearch",
        version=__version__,
        summary="Semantic search over passages.",
        lifespan=_running,
        redoc_url=None,
        responses=RESPONSES,
        generate_unique_id_function=lambda route: route.name,  # generated clients show these names
        max_body_size=settings.max_body,
        # The guard checks it; this describes it to clients.
        dependencies=[Depends(HTTPBearer(auto_error=False))] if settings.token else [],
    )
    app.state.indexes, app.state.writable = indexes, settings.writable
    app.state.workers = {}  # by the names of the indexes, while it runs
    app.include_router(routes)
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


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """The lifespan, from loading the models to closing the indexes."""
    workers: dict[str, Worker] = app.state.workers
    try:
        for name, path in app.state.indexes.items():
            workers[name] = Worker(place(path))
        for worker in workers.values():
            await worker.call(_warm)
        Thread(target=_count_fields, args=[list(workers.values())], daemon=True).start()
        if find_spec("mcp") is None:
            _add_agents(app, problem_of(MissingExtraError("mcp", "mcp", "answering agents")))
            yield
            return
        from semsearch.service.agents import agents_app, create_server

        server = create_server(workers)
        _add_agents(app, agents_app(server))
        async with server.session_manager.run():
            yield
    finally:
        while workers:
            workers.popitem()[1].close()


def _add_agents(app: FastAPI, agents: ASGIApp) -> None:
    """Answer agents; not GET: the protocol allows a stream of events, but there would be none."""
    app.router.routes.insert(0, Route("/mcp", agents, methods=["POST"]))


@routes.get("/health", summary="Whether the service is up")
async def health() -> dict[str, str]:
    """Report that the service is up."""
    return {"status": "ok", "version": __version__}


@routes.get("/v1/indexes", summary="The indexes and their contents")
def indexes(request: Request) -> list[dict[str, Any]]:
    """Names, numbers of documents, spaces and fields of the indexes that can be read."""
    found = of_each(request.app.state.workers, _described)
    return [{"name": name, **described} for name, described in found.items()]


@routes.get(f"{INDEX}/search", summary="Search an index for a text", description=LIMITS)
async def search(worker: Opened, parameters: Annotated[QueryParameters, Query()]) -> dict[str, Any]:
    """The hits for a text."""
    found: dict[str, Any] = await search_with_body(worker, parameters)
    return found


@routes.post(f"{INDEX}/search", summary="Search an index, with a JSON body", description=LIMITS)
async def search_with_body(worker: Opened, request: SearchRequest) -> Any:
    """The hits for a text; for several texts, a list of results."""
    queries = [request.query] if isinstance(request.query, str) else request.query
    found, warnings = await worker.search(queries, request.options())
    answers = [with_warnings(hits.to_dict(), warnings) for hits in found]
    return answers[0] if isinstance(request.query, str) else answers


@routes.post(f"{INDEX}/compare", summary="Search by meaning, by words and by both")
async def compare(worker: Opened, request: QueryParameters) -> dict[str, Any]:
    """The hits for a text by each complete space, by words, and by both.

    `mode`, `space` and `dense_weight` are ignored.
    """
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


@routes.get(f"{INDEX}/fields", summary="The metadata fields, with values")
def fields(worker: Opened, where: Where = None) -> dict[str, Any]:
    """The number of documents, and their fields: names, kinds, texts, bounds, histograms.

    `nearest` is a filter that matches, near one that matches nothing.
    """
    return _field_values(worker.index, where)


@routes.get(f"{INDEX}/fields/values", summary="Texts of a field")
def field_texts(
    worker: Opened,
    field: Annotated[str, Query(description="The name of the field.")],
    typed: Annotated[str, Query(description="What the texts contain.")] = "",
) -> list[list[str | int]]:
    """Up to 20 texts of a field, and how often they occur; those that begin so come first."""
    with worker.index.read() as state:
        return [list(found) for found in state.texts_like(field, typed)]


@routes.get(f"{INDEX}/overview", summary="What an index is about")
def overview(worker: Opened, where: Where = None) -> dict[str, Any]:
    """The groups of the map, queries to try, and the newest documents."""
    return overview_of(worker.index, where)


@routes.get(f"{INDEX}/map", summary="The map of the passages")
def map(worker: Opened) -> dict[str, Any]:  # noqa: A001 - the name of clients
    """The groups and points of the newest map."""
    return map_of(worker.index)


@routes.get(f"{INDEX}/map/colours", summary="A field on the map")
def map_colours(
    worker: Opened, field: Annotated[str, Query(description="The name of the field.")]
) -> dict[str, Any]:
    """The most frequent values of a field, or ranges, and the place of that of each point."""
    return colours_of(worker.index, field)


@routes.get(f"{INDEX}/map.parquet", summary="The map as a file", response_class=Response)
def map_file(worker: Opened) -> Response:
    """The points, passages and metadata as Parquet, for Embedding Atlas."""
    content = map_file_of(worker.index)
    disposition = {"Content-Disposition": 'attachment; filename="map.parquet"'}
    return Response(content, media_type="application/vnd.apache.parquet", headers=disposition)


@routes.get(f"{INDEX}/similar", summary="Similar documents")
async def similar(worker: Opened, parameters: Annotated[SimilarRequest, Query()]) -> dict[str, Any]:
    """The documents nearest to a document, without the document itself."""
    return await similar_with_body(worker, parameters)


@routes.post(f"{INDEX}/similar", summary="Similar documents, with a JSON body")
async def similar_with_body(worker: Opened, request: SimilarRequest) -> dict[str, Any]:
    """The documents nearest to a document, without the document itself."""
    options = request.model_dump(exclude={"id"})
    await asyncio.to_thread(_document, worker.index, request.id)
    found, warnings = await worker.more_like(request.id, **options)
    return with_warnings({"id": request.id, "hits": [hit.to_dict() for hit in found]}, warnings)


@routes.get(f"{INDEX}/documents", summary="A document, or a page of documents")
def documents(
    worker: Opened,
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
    index = worker.index
    if id is None:
        return _page(index, where, limit, offset)
    found = _document(index, id)
    return _as_json(found) | ({"html": html_of(found, start, end)} if html else {})


@routes.post(
    f"{INDEX}/documents", summary="Add documents", dependencies=WRITING, openapi_extra=BODY
)
async def add(worker: Opened, request: Request) -> dict[str, Any]:
    """Add or replace one document, a list of documents, or JSON lines.

    They can be found when this returns. Items that cannot be used are answered by an `error`;
    the others are added.
    """
    items = parse_items(await request.body(), request.headers.get("content-type", ""))
    return await worker.call(lambda index: add_items(index, items))


@routes.put(
    f"{INDEX}/documents",
    summary="Add or replace a document",
    dependencies=WRITING,
    status_code=HTTPStatus.NO_CONTENT,
)
async def put(worker: Opened, id: Id, request: DocumentRequest) -> None:  # noqa: A002
    """Add the document; it can be found when this returns."""
    document = Document(id, request.text, request.title, request.metadata)
    await worker.call(lambda index: index.add([document]))


@routes.delete(f"{INDEX}/documents", summary="Remove documents", dependencies=WRITING)
async def delete(
    worker: Opened,
    id: OptionalId = None,  # noqa: A002
    where: Where = None,
) -> dict[str, int]:
    """Delete a document, or all that match a filter; they cannot be found when this returns."""
    ids = None if id is None else [id]
    return {"deleted": await worker.call(lambda index: index.delete(ids, where))}


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
