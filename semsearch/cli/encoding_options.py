"""Encoding of passages by commands: on a cluster, and interrupted by Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.progress import IndexingProgress
from semsearch.errors import quantity

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.indexing.summary import Summary

ray_option = click.option(
    "--ray",
    metavar="ADDRESS",
    help="Encode on a Ray cluster: ray://HOST[:PORT], or auto for that of this machine.  "
    "[needs the extra 'ray']",
)


def check_pool(ray: str | None) -> None:
    """Check the address of a cluster before a long run."""
    if ray:
        from semsearch.indexing.ray import pool_on

        pool_on(ray)


def nodes(summary: Summary) -> str:
    """The number of cluster nodes that encoded passages; empty if this process did."""
    return f" on {quantity(len(summary.nodes), 'node')}" if summary.nodes else ""


@contextmanager
def exit_if_interrupted(index: Index, progress: IndexingProgress) -> Iterator[None]:
    """On Ctrl-C, report what was saved, and exit with the usual status."""
    try:
        yield
    except KeyboardInterrupt:
        progress.note(
            f"\ninterrupted; {quantity(len(index), 'document')} saved in {index.path}; "
            "run the same command to continue"
        )
        click.get_current_context().exit(INTERRUPTED_STATUS)
