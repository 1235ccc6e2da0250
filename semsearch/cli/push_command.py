"""``semsearch push``: copy an index to another store."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.copying import copy, copy_options


@click.command("push", cls=Command)
@copy_options("INDEX", "ADDRESS")
def command(source: Path, target: Path, allow_removals: bool, wait: float) -> None:
    """Copy an index to a Milvus server or a file of milvus-lite, without encoding.

    The index at the address is made equal to this one: changed documents are written, unchanged
    ones are kept, and those that this index lacks are removed. An interrupted copy is resumed. At
    the end, counts and the vectors of a sample are compared.

    Needs the extra 'milvus'.

    \b
    semsearch push indexes/news milvus://localhost:19530/news
    semsearch push indexes/news milvus-lite:///data/news.db/news
    """
    copy(source, target, allow_removals=allow_removals, wait=wait)
