"""``semsearch copy``: copy an index to another place or store."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import Place, allowance, removals_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import quantity


@click.command("copy")
@click.argument("source", type=Place())
@click.argument("target", type=Place())
@removals_option
def command(source: Path, target: Path, allow_removals: bool) -> None:
    """Copy an index to another directory, a Milvus server or a file of milvus-lite.

    Nothing is encoded again. An index at TARGET is made equal to SOURCE: changed documents are
    written, unchanged ones are kept, and those that SOURCE lacks are removed. An interrupted copy
    is resumed. At the end, counts and the vectors of a sample are compared.

    Addresses of Milvus need the extra 'milvus'.

    \b
    semsearch copy indexes/news milvus://localhost:19530/news
    semsearch copy milvus-lite:///data/news.db/news indexes/news
    """
    from semsearch.indexing.copying import copy_index

    with IndexingProgress("documents", "reading both indexes") as progress:

        def on_batch(done: int, total: int) -> None:
            progress.update(done, done / total)

        copied = copy_index(
            source, target, allow_removals=allowance(allow_removals, progress), on_batch=on_batch
        )
    unchanged = copied.documents - copied.written
    click.echo(
        visible(
            f"{target}: {quantity(copied.documents, 'document')} ({copied.written:,} written, "
            f"{unchanged:,} unchanged, {copied.removed:,} removed), "
            f"{quantity(copied.passages, 'passage')}, equal to {source}"
        )
    )
