"""``semsearch serve``: serve indexes over HTTP."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from semsearch.addresses import resolved
from semsearch.cli.command import Command
from semsearch.cli.options import (
    Duration,
    all_indexes,
    existing_index,
    indexes_here,
    indexes_option,
    refuse_others,
)
from semsearch.cli.render import visible
from semsearch.cli.service_client import ask, program, runtime_folder, sockets
from semsearch.errors import ArgumentError, MissingExtraError, quoted

if TYPE_CHECKING:
    from semsearch.cli.local_socket import LocalSocket

TOKEN = "SEMSEARCH_TOKEN"  # noqa: S105 - its name
#: How long `--stop` waits for a service to finish its requests.
SECONDS_TO_WAIT = 15


@click.command("serve", cls=Command)
@indexes_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 for a free one.",
)
@click.option("--writable", is_flag=True, help="Allow adding and removing documents.")
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A further allowed host name."
)
@click.option(
    "--allow-origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="An origin whose web pages may call the service, such as https://example.org.",
)
@click.option(
    "--concurrency",
    default=64,
    show_default=True,
    type=click.IntRange(1),
    help="The most requests processed at once; more get status 429.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="The maximum duration of a request; longer ones get status 504.",
)
@click.option(
    "--idle-timeout",
    "idle_seconds",
    type=Duration(),
    help="Stop after this long without a request, such as 30m.",
)
@click.option(
    "--background", is_flag=True, help="Run in the background; returns when the service is ready."
)
@click.option(
    "--stop",
    is_flag=True,
    help="Stop the running services of these indexes; where there are none, all services.",
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
    idle_seconds: float | None,
    background: bool,
    stop: bool,
) -> None:
    """Serve indexes over HTTP, until Ctrl-C.

    / is a web page, /docs describes the interface, /metrics is for Prometheus. Queries find what
    other processes have committed. Set SEMSEARCH_TOKEN to require a bearer token; this is mandatory
    for addresses that other machines can reach.

    While it runs, it also answers `semsearch query` of the same user on this machine, through a
    socket: the same output, without the time for loading the model. If the index or the program
    has changed, the command does not use the service.

    Needs the extra 'serve'.

    \b
    semsearch serve --index indexes/films
    curl "http://127.0.0.1:8080/v1/indexes/films/search?query=a+heist+goes+wrong&k=3"
    SEMSEARCH_TOKEN=... semsearch serve --host 0.0.0.0 --allow-host search.example.org
    semsearch serve --background --port 0 --idle-timeout 30m
    semsearch serve --stop
    """
    if stop:
        refuse_others({"directories", "stop"}, "does not go with --stop, which takes only --index")
        _stop([existing_index(directory) for directory in directories] or indexes_here())
        return
    for package in ("fastapi", "fastapi_offline", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "serving")
    notify = _in_background(directories) if background else _notify
    version = program()  # before further imports
    from semsearch.cli.local_requests import LocalRequests
    from semsearch.cli.server import Server
    from semsearch.encoders import current_fingerprint
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
    for directory in indexes.values():  # report errors before the server starts
        with Index.open(directory) as index:
            current_fingerprint(index.space().spec)
    if is_every_address(host) and not hosts:
        click.echo(
            "name the hosts under which other machines reach the service: --allow-host",
            err=True,
        )
    named = "localhost" if is_every_address(host) else host
    shown = f"[{named}]" if ":" in named else named
    with _listening(host, port) as listener, _local_socket() as local:
        address = f"http://{shown}:{listener.getsockname()[1]}"
        message = visible(f"serving {', '.join(indexes)} at {address}")
        app = create_app(
            indexes,
            replace(settings, socket=str(local.path) if local else None),
            lambda workers: LocalRequests(version, address, workers).routes(),
        )
        with suppress(KeyboardInterrupt):  # it has stopped already
            Server(app, local, idle_seconds, lambda: notify(message, local)).run([listener])


@contextmanager
def _local_socket() -> Iterator[LocalSocket | None]:
    """The socket through which `semsearch query` finds the service; None if not supported."""
    if runtime_folder() is None:
        yield None
        return
    from semsearch.cli.local_socket import LocalSocket

    try:
        local = LocalSocket()
    except OSError as error:
        reason = visible(str(error))
        click.echo(f"`semsearch query` cannot use this service: {reason}", err=True)
        yield None
        return
    try:
        yield local
    finally:
        local.remove()


def _notify(message: str, local: LocalSocket | None) -> None:
    del local
    click.echo(message, err=True)


def _in_background(directories: Sequence[Path]) -> Callable[[str, LocalSocket | None], None]:
    """Continue in the background; returns a function to report that the service is ready."""
    from semsearch.cli.background import run_in_background

    ready, log = run_in_background()
    named = "".join(f" --index {quoted(str(directory))}" for directory in directories)

    def notify(message: str, local: LocalSocket | None) -> None:
        process = os.getpid()
        stop = f"semsearch serve --stop{named}" if local else f"kill {process}"
        ready(f"{message} in process {process}\nlog: {log}\nto stop it: {stop}")

    return notify


def _stop(directories: Sequence[Path]) -> None:
    """Stop the services of these indexes, or all for none, and wait until they have stopped.

    Raises:
        ArgumentError: the system is not Unix, or a service does not answer.
    """
    if runtime_folder() is None:
        raise ArgumentError("--stop needs a Unix system; on this one, stop the process itself")
    wanted = [str(resolved(directory)) for directory in directories]
    stopped = False
    for path in sockets():
        try:
            served = ask(path, "/local/stop", wanted, SECONDS_TO_WAIT)
        except TimeoutError:
            number = Path(path).stem
            raise ArgumentError(f"the service in process {number} does not answer") from None
        except (OSError, ValueError):  # it was killed
            continue
        if served is not None:
            _wait_for_end(path)
            click.echo(visible(f"stopped serving {served}"), err=True)
            stopped = True
    if not stopped:
        names = " of " * bool(directories) + ", ".join(map(str, directories))
        click.echo(visible(f"no service{names} is running"), err=True)


def _wait_for_end(path: str) -> None:
    """Wait until a service has removed its socket."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ArgumentError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while ")[0]
        raise ArgumentError(f"cannot listen on {host}, port {port} ({reason})") from error
