"""Limits and access control of a service."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address

from semsearch.errors import ServeError

OPEN_PATHS = ("/health", "/")
OPEN_FOLDERS = ("/page/", "/atlas/")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """Limits and access control of a service.

    Args:
        token: required from clients (``Authorization: Bearer TOKEN``); None for no token.
        hosts: allowed host names; requests for others are rejected, so that no web page can reach
            the service under another name (DNS rebinding).
        origins: the origins of web pages that may call it, such as ``https://example.org``.
        writable: whether documents can be added and removed.
        max_characters: the maximum length of a query.
        max_queries: the maximum number of queries in a request.
        max_hits: the maximum of `offset` + `k`.
        max_answer: the maximum number of hits for several queries together.
        max_body: the maximum size of a request in bytes.
        concurrency: the number of requests processed at once; more are rejected.
        seconds: the maximum duration of a request.
        socket: the path of a Unix socket that only this user can access. Its clients need no
            token, since they could read it from the memory of this process.
    """

    token: str | None = None
    hosts: Collection[str] = LOOPBACK_NAMES
    origins: Collection[str] = ()
    writable: bool = False
    max_characters: int = 10_000
    max_queries: int = 100
    max_hits: int = 1_000
    max_answer: int = 20_000
    max_body: int = 1 << 20
    concurrency: int = 64
    seconds: float = 30.0
    socket: str | None = None

    def is_open(self, path: str) -> bool:
        """Whether a path needs no token and is available when the service is busy.

        These are the health check and the page, which asks for the token itself.
        """
        return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def settings_for(
    host: str, token: str | None, hosts: Collection[str] = (), **limits: object
) -> Settings:
    """The settings of a service that listens on an address.

    Args:
        host: the address.
        token: required from clients.
        hosts: further host names.
        limits: other arguments of `Settings`.

    Raises:
        ArgumentError: other machines could call it without a token.
    """
    token = (token or "").strip()  # like HTTP header values
    if not is_loopback(host) and not token:
        raise ServeError(
            f"listening on {host} lets other machines in: set a token in SEMSEARCH_TOKEN"
        )
    names = {*LOOPBACK_NAMES, *map(str.lower, hosts)}
    if not is_every_address(host):
        names.add(f"[{host}]" if ":" in host else host.lower())
    return Settings(token=token or None, hosts=frozenset(names), **limits)  # type: ignore[arg-type]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_every_address(host: str) -> bool:
    """Whether it is the wildcard address."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
