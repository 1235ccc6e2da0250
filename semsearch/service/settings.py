"""Limits and access control of a service."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from semsearch.errors import ArgumentError

OPEN_PATHS = ("/health", "/")
OPEN_FOLDERS = ("/page/", "/atlas/")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::\d+)?")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]+?)(:\d+)?/?")
#: Browsers leave these ports out of an origin.
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Settings:
    """Limits and access control of a service.

    Args:
        token: required from clients (``Authorization: Bearer TOKEN``); None for no token.
        hosts: allowed host names and addresses; requests for others are rejected, so that no web
            page can reach the service under another name (DNS rebinding).
        origins: the origins of web pages that may call it, such as ``https://example.org``.
        writable: whether documents can be added and removed.
        max_characters: the maximum length of a query.
        max_queries: the maximum number of queries in a request.
        max_hits: the maximum of `offset` + `k`.
        max_answer: the maximum number of hits for several queries together.
        max_body: the maximum size of a request in bytes.
        concurrency: the number of requests processed at once; more are rejected.
        seconds: the maximum duration of a request.

    Raises:
        ArgumentError: a host or an origin is malformed, or `seconds` is 0.
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

    def __post_init__(self) -> None:
        """Write hosts and origins as in the headers that they are compared with."""
        if self.seconds <= 0:
            raise ArgumentError(
                "the maximum duration of a request must be greater than 0 (--timeout)"
            )
        object.__setattr__(self, "hosts", frozenset(map(_host, self.hosts)))
        object.__setattr__(self, "origins", frozenset(map(_origin, self.origins)))

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
        ArgumentError: other machines could call it without a token, or an argument is invalid.
    """
    token = (token or "").strip()  # like HTTP header values
    if not is_loopback(host) and not token:
        raise ArgumentError(
            f"listening on {host} lets other machines in: set a token in SEMSEARCH_TOKEN"
        )
    names = {*LOOPBACK_NAMES, *hosts}
    if not is_every_address(host):
        names.add(host)
    return Settings(token=token or None, hosts=names, **limits)  # type: ignore[arg-type]


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


def _host(text: str) -> str:
    """A host as in a ``Host`` header, without the port.

    Raises:
        ArgumentError: it is neither a name nor an address.
    """
    found = _HOST.fullmatch(text.lower())
    if found and found["name"]:
        return found["name"]
    try:
        return f"[{IPv6Address(found['address'] if found else text)}]"
    except ValueError:
        raise ArgumentError(
            f"'{text}' is not a host name or an address, such as search.example.org or 10.0.0.5"
        ) from None


def _origin(text: str) -> str:
    """An origin as in an ``Origin`` header.

    Raises:
        ArgumentError: it is not an origin.
    """
    if text == "null":  # the origin of a file
        return text
    found = _ORIGIN.fullmatch(text.lower())
    if found is None:
        raise ArgumentError(f"'{text}' is not the origin of a page, such as https://example.org")
    scheme, host, port = found.groups("")
    return f"{scheme}://{_host(host)}{port if port != _DEFAULT_PORTS.get(scheme) else ''}"
