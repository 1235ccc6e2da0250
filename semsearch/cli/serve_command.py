"""``semsearch serve``: indexes over HTTP."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.options import Duration, indexes_option
from semsearch.cli.places import all_indexes
from semsearch.cli.render import visible
from semsearch.errors import ArgumentError, MissingExtraError

TOKEN = "SEMSEARCH_TOKEN"  # noqa: S105 - its name
#: How long open requests may take when the service stops.
SECONDS_TO_STOP = 10


@click.command("serve", cls=Command)
@indexes_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--writable", is_flag=True, help="Allow adding and removing documents.")
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="Another host name of it."
)
@click.option(
    "--allow-origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="An origin whose web pages may call it, such as https://example.org.",
)
@click.option(
    "--concurrency",
    default=64,
    show_default=True,
    type=click.IntRange(1),
    help="How many requests are served at once; more get status 429.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long a request may take; later it gets status 504.",
)
def command(
    directories: tuple[Path, ...],
    host: str,
    port: int,
    writable: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    concurrency: int,
    timeout: float,
) -> None:
    """Serve indexes over HTTP, until Ctrl-C.

    / is a page for people, /docs describes the interface, /metrics is for Prometheus. What other
    processes commit is found by the next query. Set SEMSEARCH_TOKEN to require a bearer token;
    listening on addresses that other machines can reach needs one.

    \b
    semsearch serve --index indexes/films
    curl "http://127.0.0.1:8080/v1/indexes/films/search?query=a+heist+goes+wrong&k=3"
    SEMSEARCH_TOKEN=... semsearch serve --host 0.0.0.0 --allow-host search.example.org
    """
    for package in ("fastapi", "fastapi_offline", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "serving")
    from semsearch.index import Index
    from semsearch.service import create_app
    from semsearch.service.settings import is_every_address, settings_for

    settings = settings_for(
        host,
        os.environ.get(TOKEN),
        hosts,
        origins=frozenset(origins),
        writable=writable,
        concurrency=concurrency,
        seconds=timeout,
    )
    indexes = all_indexes(directories)
    for directory in indexes.values():
        Index.open(directory).close()  # so that an error is reported before the server starts
    if is_every_address(host) and not hosts:
        click.echo("name the hosts that other machines use with --allow-host", err=True)
    import uvicorn

    shown = f"[{host}]" if ":" in host else host
    with _listening(host, port) as listener:
        address = f"http://{shown}:{listener.getsockname()[1]}"
        click.echo(visible(f"serving {', '.join(indexes)} at {address}"), err=True)
        config = uvicorn.Config(
            create_app(indexes, settings),
            log_level="warning",
            timeout_graceful_shutdown=SECONDS_TO_STOP,
        )
        with suppress(KeyboardInterrupt):  # it has stopped by then
            uvicorn.Server(config).run([listener])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        ArgumentError: that cannot be.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while ")[0]
        raise ArgumentError(f"cannot listen on {host}, port {port} ({reason})") from error
