"""``semsearch delete``, ``compact``, ``verify`` and ``copy``."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import (
    Place,
    allowance,
    dry_run_option,
    index_option,
    removals_option,
    where_option,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import say
from semsearch.errors import ArgumentError, quantity
from semsearch.index import Index
from semsearch.indexing.copying import copy_index
from semsearch.indexing.preview import preview_delete


@click.command("delete")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@index_option
@where_option
@removals_option
@dry_run_option
def delete_command(
    ids: tuple[str, ...],
    directory: Path,
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
    named = list(ids) or None
    if dry_run:
        removal = preview_delete(directory, named, where)
        say(f"dry run, nothing is deleted: this would remove {removal}")
        return
    with Index.open(directory) as index:
        with index.writer() as writer:
            removed = writer.delete(named, where, allow_removals=allowance(allow_removals))
        say(f"{quantity(removed, 'document')} deleted, {len(index):,} left")


@click.command("compact")
@index_option
def compact_command(directory: Path) -> None:
    """Rewrite the files of an index without deleted data.

    \b
    semsearch delete --where "year < 1950"
    semsearch compact
    """
    with Index.open(directory) as index:
        before = sum(index.info().files.values())
        with index.writer() as writer:
            writer.compact()
        after = sum(index.info().files.values())
    say(f"{directory}: {before:,} bytes before, {after:,} after")


@click.command("verify")
@index_option
@click.option("--repair", is_flag=True, help="Rebuild derived data.")
def verify_command(directory: Path, repair: bool) -> None:
    """Check the consistency of an index: SQLite, passages, vectors, snapshots, words.

    Each fault is printed with the command that fixes it; the exit status is 1 if there are faults.

    \b
    semsearch verify
    semsearch verify --repair --index indexes/films
    """
    with Index.open(directory) as index, index.writer() as writer:
        faults = writer.verify()
        if repair and any(fault.repairable for fault in faults):
            writer.repair()
            left = writer.verify()
            say(f"{quantity(len(faults), 'fault')} found, {len(left):,} left after the repair")
            faults = [fault._replace(repairable=False) for fault in left]
    for fault in faults:
        say(f"{fault.what}; to fix it: {fault.remedy}")
    if faults:
        click.get_current_context().exit(1)
    say(f"{directory}: no faults")


@click.command("copy")
@click.argument("source", type=Place())
@click.argument("target", type=Place())
@removals_option
def copy_command(source: Path, target: Path, allow_removals: bool) -> None:
    """Copy an index to another directory, a Milvus server or a file of milvus-lite.

    Nothing is encoded again. An index at TARGET is made equal to SOURCE: changed documents are
    written, unchanged ones are kept, and those that SOURCE lacks are removed. An interrupted copy
    is resumed. At the end, counts and the vectors of a sample are compared.

    Addresses of Milvus need the extra 'milvus'.

    \b
    semsearch copy indexes/news milvus://localhost:19530/news
    semsearch copy milvus-lite:///data/news.db/news indexes/news
    """
    with IndexingProgress("documents", "reading both indexes") as progress:
        copied = copy_index(
            source,
            target,
            allow_removals=allowance(allow_removals, progress),
            on_batch=progress.of,
        )
    unchanged = copied.documents - copied.written
    say(
        f"{target}: {quantity(copied.documents, 'document')} ({copied.written:,} written, "
        f"{unchanged:,} unchanged, {copied.removed:,} removed), "
        f"{quantity(copied.passages, 'passage')}, equal to {source}"
    )
