"""``semsearch push``: an index onto another store."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.copying import copy, copy_options


@click.command("push", cls=Command, page="milvus.md")
@copy_options("INDEX", "ADDRESS")
def command(source: Path, target: Path, allow_removals: bool, wait: bool) -> None:
    """Copy an index to a Milvus server or a file of milvus-lite, without encoding.

    What is at the address becomes equal to the index: changed documents are written, others are
    left alone, and those that the index lacks are removed. A copy that was interrupted goes on.
    At the end, counts and the vectors of a sample are compared.

    \b
    semsearch push indexes/news milvus://localhost:19530/news
    semsearch push indexes/news milvus-lite:///data/news.db/news
    """
    copy(source, target, allow_removals=allow_removals, wait=wait)
