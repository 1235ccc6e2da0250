"""``semsearch delete``: remove documents from an index."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import (
    allowance,
    dry_run_option,
    existing_index,
    index_option,
    removals_option,
    where_option,
)
from semsearch.cli.render import visible
from semsearch.errors import ArgumentError, quantity
from semsearch.index import Index
from semsearch.indexing.preview import preview_delete


@click.command("delete")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@index_option
@where_option
@removals_option
@dry_run_option
def command(
    ids: tuple[str, ...],
    directory: Path | None,
    where: str | None,
    allow_removals: bool,
    dry_run: bool,
) -> None:
    """Remove documents by their ids or by a filter.

    With ids and a filter, only documents that match both are removed. An unknown id is an error,
    and nothing is removed.

    \b
    semsearch delete doc-17 doc-18
    semsearch delete --where "year < 1950" --index indexes/films --dry-run

    Deleted documents are no longer found; `semsearch compact` removes them from the files.
    """
    if not ids and where is None:
        raise ArgumentError("nothing to delete: give IDs, --where, or both")
    directory = existing_index(directory)
    if dry_run:
        removal = preview_delete(directory, list(ids) or None, where)
        click.echo(visible(f"dry run, nothing is deleted: this would remove {removal}"))
        return
    with Index.open(directory) as index:
        with index.writer() as writer:
            removed = writer.delete(
                list(ids) or None, where, allow_removals=allowance(allow_removals)
            )
        left = len(index)
    click.echo(f"{quantity(removed, 'document')} deleted, {left:,} left")
