"""``semsearch serve``: serve indexes over HTTP, or to an agent over MCP."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from semsearch.cli.options import Duration, all_indexes, indexes_option
from semsearch.cli.render import visible
from semsearch.errors import MissingExtraError

TOKEN = "SEMSEARCH_TOKEN"  # noqa: S105 - its name
#: How long open requests may take when the service stops.
SECONDS_TO_STOP = 10


@click.command("serve")
@indexes_option
@click.option("--mcp", is_flag=True, help="Serve one agent over standard input and output.")
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
def command(
    directories: tuple[Path, ...],
    mcp: bool,
    host: str,
    port: int,
    writable: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    concurrency: int,
    timeout: float,
) -> None:
    """Serve indexes over HTTP, or to an agent (Model Context Protocol), until Ctrl-C.

    / is a web page, /docs describes the interface. Queries find what other processes have
    committed. Set SEMSEARCH_TOKEN to require a bearer token; this is mandatory for addresses that
    other machines can reach.

    Programs such as editors and chat clients start the command with --mcp themselves; the last
    example is their configuration. All tools for agents are read-only.

    Needs the extra 'serve', or 'mcp'.

    \b
    semsearch serve --index indexes/films
    curl "http://127.0.0.1:8080/v1/indexes/films/search?query=a+heist+goes+wrong&k=3"
    SEMSEARCH_TOKEN=... semsearch serve --host 0.0.0.0 --allow-host search.example.org
    {"mcpServers": {"films": {"command": "semsearch", "args": ["serve", "--mcp"]}}}
    """
    if mcp:
        _serve_agent(all_indexes(directories))
        return
    for package in ("fastapi", "fastapi_offline", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "serving")
    import uvicorn

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
            "name the hosts under which other machines reach the service: --allow-host", err=True
        )
    click.echo(visible(f"serving {', '.join(indexes)}"), err=True)
    uvicorn.run(
        create_app(indexes, settings),
        host=host,
        port=port,
        access_log=False,
        timeout_graceful_shutdown=SECONDS_TO_STOP,
    )


def _serve_agent(indexes: dict[str, Path]) -> None:
    if find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp", "the Model Context Protocol")
    from semsearch.service.agents import create_server
    from semsearch.service.worker import Worker

    with ExitStack() as stack:
        workers = {}
        for name, directory in indexes.items():
            workers[name] = Worker(directory)
            stack.callback(workers[name].close)
        # Ctrl-C ends the process: Python would wait for the thread that reads standard input.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        create_server(workers).run()
