"""``semsearch serve``: serve indexes over HTTP, or to an agent over MCP."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import INDEXES, Place, existing_index, indexes_here, repeated_option
from semsearch.cli.render import note
from semsearch.errors import ArgumentError, MissingExtraError

TOKEN = "SEMSEARCH_TOKEN"  # noqa: S105 - its name
#: How long open requests may take when the service stops.
SECONDS_TO_STOP = 10


@click.command("serve")
@click.option(
    "--index",
    "directories",
    metavar="DIR",
    multiple=True,
    type=Place(),
    help=f"An index directory; may be repeated.  [default: all under {INDEXES}/]",
)
@click.option("--mcp", is_flag=True, help="Serve one agent over standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8080, show_default=True, help="The port to listen on; 0 for a free one."
)
@click.option("--writable", is_flag=True, help="Allow adding and removing documents.")
@repeated_option("--allow-host", "hosts", "NAME", "A further allowed host name.")
@repeated_option(
    "--allow-origin", "origins", "URL", "An origin whose pages may call: https://example.org."
)
@click.option(
    "--concurrency", default=64, show_default=True, help="Most requests at once; more get 429."
)
@click.option(
    "--timeout",
    "seconds",
    default=30.0,
    show_default=True,
    help="Of requests; longer ones get 504.",
)
def serve_command(
    directories: tuple[Path, ...],
    mcp: bool,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    **options: Any,
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
        if find_spec("mcp") is None:
            raise MissingExtraError("mcp", "mcp", "the Model Context Protocol")
        from semsearch.service.agents import create_server
        from semsearch.service.stdio import LazyWorkers, serve_agent

        with closing(LazyWorkers(_by_name(directories))) as workers:
            # Ctrl-C ends the process: Python would wait for the thread that reads standard input.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            serve_agent(create_server(workers))
        return
    for package in ("fastapi", "fastapi_offline", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "serve", "serving")
    import uvicorn

    from semsearch.encoders import current_fingerprint
    from semsearch.index import Index
    from semsearch.service import create_app
    from semsearch.service.connections import LimitedConnection
    from semsearch.service.settings import is_every_address, settings_for

    token = os.environ.get(TOKEN)
    settings = settings_for(host, token, hosts, origins=frozenset(origins), **options)
    indexes = _by_name(directories)
    for directory in indexes.values():  # report errors before the server starts
        with Index.open(directory) as index:
            current_fingerprint(index.space().spec)
    if is_every_address(host) and not hosts:
        note("name the hosts under which other machines reach the service: --allow-host")
    note(f"serving {', '.join(indexes)}")
    uvicorn.run(
        create_app(indexes, settings),
        host=host,
        port=port,
        http=LimitedConnection,
        access_log=False,
        timeout_graceful_shutdown=SECONDS_TO_STOP,
    )


def _by_name(directories: tuple[Path, ...]) -> dict[str, Path]:
    """The given indexes, or all under indexes/, by name."""
    indexes: dict[str, Path] = {}
    for directory in map(existing_index, directories or indexes_here()):
        name = directory.resolve().name
        if name in indexes:
            raise ArgumentError(f"two indexes are named '{name}'; rename one of the directories")
        indexes[name] = directory
    return indexes
