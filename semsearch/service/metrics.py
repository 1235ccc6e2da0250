"""Figures of a service, in Prometheus's text format."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from starlette.requests import Request
from starlette.responses import Response

#: Others are counted together: their names would be the client's.
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """Counts requests, times them, and tells how many queries were encoded together."""

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

    async def measured(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Answer a request, and count it."""
        started = time.perf_counter()
        response = await call_next(request)
        route = getattr(request.scope.get("route"), "path", "none")
        method = request.method if request.method in METHODS else "other"
        self._requests.labels(method, route, response.status_code).inc()
        self._seconds.labels(route).observe(time.perf_counter() - started)
        return response

    def encoded_together(self, queries: int) -> None:
        """So many queries were encoded together."""
        self._together.observe(queries)

    def response(self) -> Response:
        """All figures."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
