"""The HTTP server of `semsearch serve`."""

from __future__ import annotations

import time
from collections.abc import Callable
from socket import socket

import click
import uvicorn
from starlette.types import ASGIApp

from semsearch.cli.local_socket import LocalSocket

#: How long open requests may take when the service stops.
SECONDS_TO_STOP = 10


class Server(uvicorn.Server):
    """A server that also listens on its user's socket, and stops after a time without requests.

    Args:
        app: the application.
        local: the user's socket, if any.
        idle_seconds: the time without requests after which it stops; None for never.
        on_ready: called when it accepts requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        local: LocalSocket | None,
        idle_seconds: float | None,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=SECONDS_TO_STOP)
        )
        self._local = local
        self._idle_seconds = idle_seconds
        self._on_ready = on_ready
        self._requests = 0
        self._last_busy = 0.0

    def run(self, sockets: list[socket] | None = None) -> None:
        """Serve until a signal, or until it has been idle for too long."""
        local = [self._local.socket] if self._local else []
        super().run([*(sockets or []), *local])

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Load the indexes and listen."""
        await super().startup(sockets)
        self._last_busy = time.monotonic()
        if self._local:
            self._local.publish()
        self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop; called ten times a second."""
        requests, now = self.server_state.total_requests, time.monotonic()
        if self.server_state.tasks or requests != self._requests:
            self._requests, self._last_busy = requests, now
        if self._idle_seconds is not None and now - self._last_busy > self._idle_seconds:
            click.echo(f"no request for {self._idle_seconds:g} s: stopped", err=True)
            return True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Finish open requests."""
        await super().shutdown(sockets)
        if self._local:  # now, since the signal that ends the server may end the process
            self._local.remove()
