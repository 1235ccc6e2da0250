"""``semsearch pull``: copy an index from another store."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.copying import copy, copy_options


@click.command("pull", cls=Command)
@copy_options("ADDRESS", "INDEX")
def command(source: Path, target: Path, allow_removals: bool, wait: float) -> None:
    """Copy an index from a Milvus server or a file of milvus-lite, without encoding.

    This is `semsearch push` in the opposite direction.

    Needs the extra 'milvus'.

    \b
    semsearch pull milvus://localhost:19530/news indexes/news
    """
    copy(source, target, allow_removals=allow_removals, wait=wait)
