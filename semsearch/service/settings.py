"""What a service allows, and to whom."""

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
    """The limits of a service.

    Args:
        token: what requests must bear (``Authorization: Bearer TOKEN``); None asks for none.
        hosts: by which names the service may be called; requests for others are refused, so that
            no web page can reach it under a name of its own (DNS rebinding).
        origins: the web pages of other hosts that may call it, such as ``https://example.org``.
        writable: whether documents can be added and removed.
        max_characters: of a query.
        max_queries: of one request.
        max_hits: how deep hits may be asked for: `offset` + `k`.
        max_body: bytes of a request.
        concurrency: how many requests are served at once; more are refused.
        seconds: how long a request may take.
        socket: the path that a Unix socket was bound to which only this user can reach. Whoever
            comes through it could read the token out of this process: none is asked for.
    """

    token: str | None = None
    hosts: Collection[str] = LOOPBACK_NAMES
    origins: Collection[str] = ()
    writable: bool = False
    max_characters: int = 10_000
    max_queries: int = 100
    max_hits: int = 1_000
    max_body: int = 1 << 20
    concurrency: int = 64
    seconds: float = 30.0
    socket: str | None = None

    def is_open(self, path: str) -> bool:
        """Whether a path is open without a token and when the service is busy.

        That it is alive is no secret; nor is the page, which asks for the token itself.
        """
        return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def settings_for(
    host: str, token: str | None, hosts: Collection[str] = (), **limits: object
) -> Settings:
    """The settings of a service that listens on an address.

    Args:
        host: the address.
        token: what requests must bear.
        hosts: further names by which it is called.
        limits: others of `Settings`.

    Raises:
        ArgumentError: others than this machine could call it, without a token.
    """
    token = (token or "").strip()  # as HTTP does with what requests bear
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
    """Whether it stands for all addresses of the machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
