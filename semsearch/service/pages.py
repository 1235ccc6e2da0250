"""Serves the web page, and adds headers that restrict what browsers do with answers."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE = Path(__file__).parent / "page"

_OWN = "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
#: Content security policies: of the page, of the documentation at /docs, and of all other answers.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    f"connect-src 'self'; {_OWN}"
)
DOCS_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    f"img-src 'self' data:; {_OWN}"
)
DATA_POLICY = f"default-src 'none'; {_OWN}"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the URL contains the query
    "Cache-Control": "no-cache",
}


class SecureHeaders:
    """Adds `HEADERS` and a content security policy to all answers.

    Args:
        app: answers requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["Content-Security-Policy"] = _policy(scope["path"], scope["query_string"])
            await send(message)

        await self._app(scope, receive, sent)


def _policy(path: str, query: bytes) -> str:
    if path == "/" and b"pictures=1" in query.split(b"&"):
        return PAGE_POLICY.replace("img-src 'self'", "img-src 'self' https: http:")
    if path == "/" or path.startswith("/page/"):
        return PAGE_POLICY
    return DOCS_POLICY if path == "/docs" else DATA_POLICY


def add_page(app: FastAPI) -> None:
    """Serve the page at /."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE))
