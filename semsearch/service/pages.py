"""Serves the web page, and the files of Embedding Atlas if it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).parent / "page"

#: Scripts, styles and requests are restricted to the service. Embedding Atlas loads its workers
#: from data URLs, and generates images and WebAssembly.
ATLAS_STYLE = "'sha256-HyYMygyBaJTsYJxuGwZ3CsecPGUj5CRpvy8fclvPaPw='"  # a line in its legend
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        f"style-src 'self' 'unsafe-hashes' {ATLAS_STYLE}",
        "img-src 'self' data: blob:",
        "connect-src 'self' data:",
        "worker-src data: blob:",
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
    found = find_spec("embedding_atlas")
    if found is not None and found.origin is not None:
        widget = Path(found.origin).parent / "widget_static" / "anywidget"
        app.mount("/atlas", Files(directory=widget))
