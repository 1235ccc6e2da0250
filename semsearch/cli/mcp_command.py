"""``semsearch mcp``: serve indexes to agents."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.options import all_indexes, indexes_option
from semsearch.errors import MissingExtraError


@click.command("mcp", cls=Command)
@indexes_option
def command(directories: tuple[Path, ...]) -> None:
    """Let agents search indexes, with the Model Context Protocol over standard input and output.

    The tools search, fetch documents, find similar ones and describe the indexes; all are
    read-only. Programs such as editors and chat clients start this command themselves; the second
    example is their configuration.

    Needs the extra 'mcp'.

    \b
    semsearch mcp --index indexes/films
    {"mcpServers": {"films": {"command": "semsearch", "args": ["mcp", "--index", "/data/films"]}}}
    """
    if find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp", "the Model Context Protocol")
    from semsearch.service.agents import create_server
    from semsearch.service.worker import Worker

    workers: dict[str, Worker] = {}
    try:
        for name, directory in all_indexes(directories).items():
            workers[name] = Worker(directory)
        server = create_server(workers)
        with _ended_by_ctrl_c():
            server.run()
    finally:
        for worker in workers.values():
            worker.close()


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the process: Python would wait for the thread that reads standard input."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not if it is ignored, as in background jobs
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
