"""Error responses as problem details (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from semsearch.errors import (
    ArgumentError,
    BadRowError,
    DocumentNotFoundError,
    FilterError,
    IndexBusyError,
    MissingExtraError,
    NoVectorError,
    SemsearchError,
    SpaceError,
)

#: Client errors and temporary ones; all others are server errors.
STATUSES: dict[type[SemsearchError], HTTPStatus] = {
    DocumentNotFoundError: HTTPStatus.NOT_FOUND,
    ArgumentError: HTTPStatus.UNPROCESSABLE_ENTITY,
    BadRowError: HTTPStatus.UNPROCESSABLE_ENTITY,
    FilterError: HTTPStatus.UNPROCESSABLE_ENTITY,
    NoVectorError: HTTPStatus.UNPROCESSABLE_ENTITY,
    SpaceError: HTTPStatus.UNPROCESSABLE_ENTITY,
    IndexBusyError: HTTPStatus.CONFLICT,
    MissingExtraError: HTTPStatus.NOT_IMPLEMENTED,
}


#: The error responses for OpenAPI, by status.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {
            "application/problem+json": {
                "schema": {
                    "type": "object",
                    "required": ["title", "status", "detail"],
                    "properties": {
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string", "description": "A line for users."},
                        "code": {
                            "type": "string",
                            "description": "The kind of error; docs/errors has a page about each.",
                        },
                    },
                }
            }
        },
    }
    for status in (400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 501, 503, 504)
}


def problem(
    status: int, detail: str, headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    """An error response.

    Args:
        status: the HTTP status.
        detail: a line for users.
        headers: of the response.
        more: further members.
    """
    found = HTTPStatus(status)
    content = {"title": found.phrase, "status": found.value, "detail": detail, **more}
    return JSONResponse(content, found.value, headers, media_type="application/problem+json")


def problem_of(error: SemsearchError) -> JSONResponse:
    """The response for an error; the member ``code`` is that of the error."""
    return problem(status_of(error), str(error), code=error.code)


def status_of(error: SemsearchError) -> HTTPStatus:
    """The HTTP status of an error."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status
    return HTTPStatus.SERVICE_UNAVAILABLE
