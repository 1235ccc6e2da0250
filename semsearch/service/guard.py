"""Checks requests before they are processed."""

from __future__ import annotations

import asyncio
import hmac
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semsearch.service.problems import problem
from semsearch.service.settings import Settings


class Guard:
    """Checks host, origin, token, size, number and duration of requests.

    A request whose client has gone is cancelled.

    Args:
        app: processes accepted requests.
        settings: limits and access.
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
        rejection = self._rejection(scope)
        if rejection is not None:
            await rejection(scope, receive, send)
            return
        self._running += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._running -= 1

    def _rejection(self, scope: Scope) -> Response | None:
        """The response to a request that is rejected by its headers."""
        settings, headers = self._settings, Headers(scope=scope)
        host = headers.get("host", "").lower()
        if _without_port(host) not in settings.hosts:
            detail = f"host {host[:100]!r} is not allowed (see --allow-host)"
            return problem(HTTPStatus.FORBIDDEN, detail)
        origin = headers.get("origin")
        if origin and origin not in settings.origins and _host_of(origin.lower()) != host:
            detail = f"origin {origin[:100]!r} is not allowed (see --allow-origin)"
            return problem(HTTPStatus.FORBIDDEN, detail)
        is_open = settings.is_open(scope["path"]) or scope["method"] == "OPTIONS"
        if settings.token is not None and not is_open:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_valid = hmac.compare_digest(given.encode("latin-1"), settings.token.encode())
            if not is_valid or scheme.lower() != "bearer":
                return problem(
                    HTTPStatus.UNAUTHORIZED,
                    "this service requires a token (Authorization: Bearer …)",
                    {"WWW-Authenticate": "Bearer"},
                )
        coding = headers.get("content-encoding", "identity")
        if coding != "identity":
            detail = f"Content-Encoding {coding[:100]!r} is not supported: send bodies uncompressed"
            accepted = {"Accept-Encoding": "identity"}
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, accepted)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.max_body:
            return self._too_large()
        if self._running >= settings.concurrency and not settings.is_open(scope["path"]):
            detail = f"{self._running} requests are being processed; try again"
            return problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        messages: asyncio.Queue[Message] = asyncio.Queue()
        detail = f"no answer within {self._settings.seconds:g} s"
        rejection: Response = problem(HTTPStatus.GATEWAY_TIMEOUT, detail)

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        async def listen(limit: asyncio.Timeout) -> None:
            """Read the request; stop its processing if it is too large or its client has gone."""
            nonlocal rejection
            read = 0
            while True:
                message = await receive()
                read += len(message.get("body", b""))
                if read > self._settings.max_body:
                    rejection = self._too_large()
                    break
                messages.put_nowait(message)
                if message["type"] == "http.disconnect":
                    rejection = Response(status_code=499)  # counted, as nginx does
                    break
            if not (started or limit.expired()):
                limit.reschedule(0)

        try:
            async with asyncio.timeout(self._settings.seconds) as limit:
                listening = asyncio.create_task(listen(limit))
                try:
                    await self._app(scope, messages.get, sent)
                finally:
                    listening.cancel()
        except TimeoutError:
            if not started:
                await rejection(scope, receive, send)

    def _too_large(self) -> Response:
        detail = f"a request can have at most {self._settings.max_body:,} bytes"
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, {"Connection": "close"})


def _host_of(origin: str) -> str | None:
    """The host and port of an ``Origin`` header; None if it is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _without_port(host: str) -> str:
    """The host name in a ``Host`` header."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
