"""``semsearch compact``: rewrite an index without deleted data."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import existing_index, index_option
from semsearch.cli.render import visible
from semsearch.index import Index


@click.command("compact")
@index_option
def command(directory: Path | None) -> None:
    """Rewrite the files of an index without deleted data.

    \b
    semsearch delete --where "year < 1950"
    semsearch compact
    """
    directory = existing_index(directory)
    with Index.open(directory) as index:
        before = sum(index.info().files.values())
        with index.writer() as writer:
            writer.compact()
        after = sum(index.info().files.values())
    click.echo(visible(f"{directory}: {before:,} bytes before, {after:,} after"))
