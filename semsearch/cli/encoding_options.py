"""Options of commands that encode passages, and what happens to them on Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.options import precision_option, together
from semsearch.cli.progress import IndexingProgress
from semsearch.errors import quantity
from semsearch.records import STORED_TYPES

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.indexing.summary import Summary

space_options = together(
    click.option(
        "--dimension",
        type=click.IntRange(1),
        metavar="N",
        help="Keep the leading N dimensions of vectors in new spaces, like the suffix @Nd of a "
        "spec. Models trained with --dimensions lose less.",
    ),
    click.option(
        "--stored-type",
        type=click.Choice(STORED_TYPES),
        help="The data type of stored vectors in new spaces.  [default: float32]",
    ),
    precision_option,
)

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
