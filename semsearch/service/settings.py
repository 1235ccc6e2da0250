"""Limits and access control of a service."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address

from semsearch.errors import ArgumentError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """Limits and access control of a service; `semsearch.service.requests` has those of a search.

    Args:
        token: required from clients (``Authorization: Bearer TOKEN``); None for no token.
        hosts: allowed host names and addresses; requests for others are rejected, so that no web
            page can reach the service under another name (DNS rebinding).
        origins: the origins of web pages that may call it, such as ``https://example.org``.
        writable: whether documents can be added and removed.
        max_body: the maximum size of a request in bytes.
        concurrency: the number of requests processed at once; more are rejected.
        seconds: the maximum duration of a request.
    """

    token: str | None = None
    hosts: Collection[str] = LOOPBACK_NAMES
    origins: Collection[str] = ()
    writable: bool = False
    max_body: int = 1 << 20
    concurrency: int = 64
    seconds: float = 30.0


def settings_for(
    host: str, token: str | None, hosts: Collection[str] = (), **limits: object
) -> Settings:
    """The settings of a service that listens on an address, `host`, and allows further `hosts`.

    Raises:
        ArgumentError: other machines could call it without a token.
    """
    token = (token or "").strip()  # like HTTP header values
    if not is_loopback(host) and not token:
        raise ArgumentError(f"refusing to listen on {host} without a token; set SEMSEARCH_TOKEN")
    own = () if is_every_address(host) else (host,)
    # As in a header: IPv6 addresses are in brackets.
    names = [f"[{name}]" if ":" in name else name for name in (*own, *hosts)]
    return Settings(token=token or None, hosts={*LOOPBACK_NAMES, *names}, **limits)  # type: ignore[arg-type]


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
