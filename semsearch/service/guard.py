"""Checks requests before they are processed: hosts, origins, tokens, number and duration."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection
from http import HTTPStatus

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semsearch.service.pages import SecureHeaders
from semsearch.service.problems import problem
from semsearch.service.settings import Settings

OPEN_PATHS = ("/health", "/")
OPEN_FOLDER = "/page/"

#: Request headers of the Model Context Protocol.
AGENT_HEADERS = ("Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name")


def guard(app: FastAPI, settings: Settings) -> None:
    """Add the checks to an application; the last one added runs first."""
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(Access, token=settings.token, origins=settings.origins)
    if settings.origins:  # these can also read rejections
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", *AGENT_HEADERS],
        )
    app.add_middleware(
        TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False
    )
    app.add_middleware(SecureHeaders)


def is_open(path: str) -> bool:
    """Whether a path needs no token and is available when the service is busy.

    These are the health check and the page, which asks for the token itself.
    """
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


class Access:
    """Refuses requests without the token, and those that browsers send for pages of other sites.

    Without a token, these could make the service work, and learn whether a document exists.

    Args:
        app: processes accepted requests.
        token: required as a bearer token; None for no token.
        origins: the origins whose pages may send requests.
    """

    def __init__(self, app: ASGIApp, token: str | None, origins: Collection[str]) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        app = self._app
        if scope["type"] == "http" and not is_open(scope["path"]):
            app = self._refusal(Headers(scope=scope)) or app
        await app(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        """The answer to a request that is refused."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self._token is not None:
            is_right = hmac.compare_digest(token.encode("latin-1"), self._token)
            if not is_right or scheme.lower() != "bearer":
                detail = "this service requires a token (Authorization: Bearer …)"
                return problem(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": "Bearer"})
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and headers.get("origin") not in self._origins:
            return problem(HTTPStatus.FORBIDDEN, "refused for a page of another site")
        return None


class Limits:
    """Limits the number and the duration of requests, and cancels those whose clients have gone.

    Args:
        app: processes accepted requests.
        settings: the limits.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        counted = not is_open(scope["path"])
        if counted and self._running >= self._settings.concurrency:
            detail = f"{self._running} requests are being processed; try again"
            busy = problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})
            await busy(scope, receive, send)
            return
        self._running += counted
        messages: asyncio.Queue[Message] = asyncio.Queue()
        started = False
        seconds = self._settings.seconds
        rejection: Response = problem(HTTPStatus.GATEWAY_TIMEOUT, f"no answer within {seconds:g} s")

        async def listen() -> None:
            """Read the request until its client has gone."""
            while True:
                message = await receive()
                messages.put_nowait(message)
                if message["type"] == "http.disconnect":
                    return

        async def sent(message: Message) -> None:
            nonlocal counted, started
            started = True
            if message["type"] == "http.response.body" and not message.get("more_body"):
                # Before the client has it: its next request may come at once.
                self._running -= counted
                counted = False
            await send(message)

        listening = asyncio.ensure_future(listen())
        answering = asyncio.ensure_future(self._app(scope, messages.get, sent))
        try:
            await asyncio.wait(
                [answering, listening], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answering.done() or started:
                await answering
                return
            if listening.done():
                rejection = Response(status_code=499)  # as nginx; FastAPI makes it 413 if too large
        except asyncio.CancelledError:  # by the server, which closes
            rejection = problem(HTTPStatus.SERVICE_UNAVAILABLE, "the service is closing")
        finally:
            listening.cancel()
            answering.cancel()
            self._running -= counted
            counted = False
        if not started:
            await rejection(scope, receive, send)
