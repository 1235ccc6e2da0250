"""Code shared by ``semsearch push`` and ``semsearch pull``."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.options import Decorator, Place, together, wait_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.removals import allowance, removals_option
from semsearch.cli.render import visible
from semsearch.texts import quantity


def copy_options(source: str, target: str) -> Decorator:
    """The arguments and options of a copy."""
    return together(
        click.argument("source", metavar=source, type=Place()),
        click.argument("target", metavar=target, type=Place()),
        removals_option,
        wait_option,
    )


def copy(source: Path, target: Path, *, allow_removals: bool, wait: float) -> None:
    """Copy an index to another place, and report what was done."""
    from semsearch.indexing.copying import copy_index

    with IndexingProgress("documents", "reading both indexes") as progress:

        def on_batch(done: int, total: int) -> None:
            progress.update(done, done / total)

        try:
            copied = copy_index(
                source,
                target,
                allow_removals=allowance(allow_removals, progress),
                wait=wait,
                on_batch=on_batch,
            )
        except KeyboardInterrupt:
            progress.note("\ninterrupted; run the same command to continue")
            click.get_current_context().exit(INTERRUPTED_STATUS)
    unchanged = copied.documents - copied.written
    click.echo(
        visible(
            f"{target}: {quantity(copied.documents, 'document')} ({copied.written:,} written, "
            f"{unchanged:,} unchanged, {copied.removed:,} removed), "
            f"{quantity(copied.passages, 'passage')}, equal to {source}"
        )
    )
