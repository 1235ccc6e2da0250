"""Error responses as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from semsearch.errors import (
    ArgumentError,
    BadRowError,
    DocumentNotFoundError,
    IndexBusyError,
    MissingExtraError,
    NoVectorError,
    SemsearchError,
    SpaceError,
)

MEDIA_TYPE = "application/problem+json"

#: Client errors and temporary ones; all others are server errors.
STATUSES: dict[type[SemsearchError], HTTPStatus] = {
    DocumentNotFoundError: HTTPStatus.NOT_FOUND,
    ArgumentError: HTTPStatus.UNPROCESSABLE_ENTITY,
    BadRowError: HTTPStatus.UNPROCESSABLE_ENTITY,
    NoVectorError: HTTPStatus.UNPROCESSABLE_ENTITY,
    SpaceError: HTTPStatus.UNPROCESSABLE_ENTITY,
    IndexBusyError: HTTPStatus.CONFLICT,
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
}

_TEXT, _INTEGER = {"type": "string"}, {"type": "integer"}
PROBLEM = {
    "title": "Problem",
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {"title": _TEXT, "status": _INTEGER, "detail": _TEXT, "code": _TEXT},
}
#: The error responses for OpenAPI.
RESPONSES: dict[int | str, dict[str, Any]] = {
    statuses: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for statuses, description in (("4XX", "The request is at fault."), ("5XX", "It failed."))
}


def problem(
    status: int, detail: str, headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    """An error response; `detail` is a line for users, and `more` are further members."""
    found = HTTPStatus(status)
    content = {"title": found.phrase, "status": found.value, "detail": detail, **more}
    return JSONResponse(content, found.value, headers, media_type=MEDIA_TYPE)


def problem_of(error: SemsearchError) -> JSONResponse:
    """The response for an error; the member ``code`` is that of the error."""
    kinds = (status for kind, status in STATUSES.items() if isinstance(error, kind))
    status = next(kinds, HTTPStatus.SERVICE_UNAVAILABLE)
    return problem(status, str(error), code=error.code)


def add_problems(app: FastAPI) -> None:
    """Answer errors with problem details."""

    @app.exception_handler(SemsearchError)
    async def of_index(request: Request, error: SemsearchError) -> JSONResponse:
        return problem_of(error)

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, error.detail, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def of_request(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [one | {"loc": one["loc"][1:] or one["loc"]} for one in error.errors()]
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, reasons(found))


def reasons(errors: Iterable[Mapping[str, Any]]) -> str:
    """What is wrong with values that pydantic has refused: ``k: Input should be …``."""
    named = [(".".join(map(str, error["loc"])), error["msg"]) for error in errors]
    return "; ".join(f"{name}: {message}" if name else message for name, message in named)
