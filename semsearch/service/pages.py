"""Serves the web page."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).parent / "page"

#: Scripts, styles and requests are restricted to the service.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the URL contains the query
    "Cache-Control": "no-cache",
}


class Files(StaticFiles):
    """Static files with the headers of the page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or 304 Not Modified."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def add_page(app: FastAPI) -> None:
    """Serve the page at /."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=HEADERS)

    app.mount("/page", Files(directory=PAGE))
