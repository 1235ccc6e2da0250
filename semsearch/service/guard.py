"""What a request has to pass before anything is done for it."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semsearch.service.problems import problem
from semsearch.service.settings import Settings

#: Paths that begin so are for processes of the same user, through `Settings.socket`.
LOCAL = "/local/"


class TooLargeError(Exception):
    """A body has more bytes than are allowed."""


class Guard:
    """Checks host, origin, token, size and number of requests, and how long they take.

    Args:
        app: what answers those that pass.
        settings: what is allowed.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._running += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._running -= 1

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is not even read."""
        settings, headers = self._settings, Headers(scope=scope)
        host = headers.get("host", "").lower()
        if _without_port(host) not in settings.hosts:
            detail = f"this service is not called {host[:100]!r} (see --allow-host)"
            return problem(HTTPStatus.FORBIDDEN, detail)
        origin = headers.get("origin")
        if origin and origin not in settings.origins and urlsplit(origin.lower()).netloc != host:
            detail = f"pages of {origin[:100]!r} may not call this (see --allow-origin)"
            return problem(HTTPStatus.FORBIDDEN, detail)
        is_local = settings.socket is not None and settings.socket in (scope.get("server") or ())
        if scope["path"].startswith(LOCAL) and not is_local:
            return problem(HTTPStatus.NOT_FOUND, "this is for processes of the service's user")
        is_open = settings.is_open(scope["path"]) or scope["method"] == "OPTIONS"
        if settings.token is not None and not is_open and not is_local:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.encode("latin-1"), settings.token.encode())
            if not is_right or scheme.lower() != "bearer":
                return problem(
                    HTTPStatus.UNAUTHORIZED,
                    "this service needs a token (Authorization: Bearer …)",
                    {"WWW-Authenticate": "Bearer"},
                )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.max_body:
            return self._too_large()
        if self._running >= settings.concurrency and not settings.is_open(scope["path"]):
            detail = f"{self._running} requests are being served; try again"
            return problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._settings.max_body:
                raise TooLargeError
            return message

        async def watched(message: Message) -> None:
            nonlocal begun
            if read <= self._settings.max_body:  # else it says that it could not read the body
                begun = True
                await send(message)

        try:
            async with asyncio.timeout(self._settings.seconds):
                with suppress(TooLargeError):
                    await self._app(scope, counted, watched)
        except TimeoutError:
            if not begun:
                detail = f"no answer within {self._settings.seconds:g} s"
                await problem(HTTPStatus.GATEWAY_TIMEOUT, detail)(scope, receive, send)
        else:
            if read > self._settings.max_body and not begun:
                await self._too_large()(scope, receive, send)

    def _too_large(self) -> Response:
        detail = f"a request has at most {self._settings.max_body:,} bytes"
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, {"Connection": "close"})


def _without_port(host: str) -> str:
    """The name of a ``Host`` header."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
