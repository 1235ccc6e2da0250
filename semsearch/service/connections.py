"""Limits open connections, and the time that a client has to send the head of a request."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: The most open connections, below the usual limit of open files (1,024).
MAX_CONNECTIONS = 512
SECONDS_FOR_HEAD = 10.0


class LimitedConnection(H11Protocol):
    """A connection that is closed if it is one too many, or if no whole head arrives in time.

    The body of a request and its answer have the time limit of requests.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse the connection, or begin to wait for a request."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Handle data; those of a further request start another wait."""
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS_FOR_HEAD, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
