"""Metrics of a service, in Prometheus's text format."""

from __future__ import annotations

import time

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """Counts and times requests, and records how many queries were encoded together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter("semsearch_requests", "Requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "semsearch_request_seconds",
            "How long requests took.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._together = Histogram(
            "semsearch_queries_encoded_together",
            "Queries that were encoded together.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self._registry,
        )

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Record an answered request."""
        route = getattr(scope.get("route"), "path", "none")
        self._requests.labels(scope["method"], route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def encoded_together(self, queries: int) -> None:
        """Record the number of queries encoded together."""
        self._together.observe(queries)

    def response(self) -> Response:
        """All metrics."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class Measured:
    """Counts and times all requests of an application, including rejected ones.

    Args:
        app: the application.
        metrics: records them.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            self._metrics.answered(scope, status, time.perf_counter() - started)
