"""``semsearch map``: project the passages of an index to two dimensions."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

import click

from semsearch.cli.options import existing_index, index_option, space_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import MissingExtraError, quantity, quoted


@click.command("map")
@index_option
@space_option
def command(directory: Path | None, space: str | None) -> None:
    """Project the passages of an index to a map in two dimensions.

    Positions (by t-SNE) and groups (by k-means) are stored beside the index; the page of
    `semsearch serve` shows the newest map.
    Passages added later are shown after the map is created again.

    Needs the extra 'map'.

    \b
    semsearch map --index indexes/films
    semsearch serve --index indexes/films
    """
    if find_spec("openTSNE") is None:
        raise MissingExtraError("openTSNE", "map", "a map")
    from semsearch.explore.map import make_map
    from semsearch.index import Index

    started = time.perf_counter()
    path = existing_index(directory)
    with Index.open(path) as index, IndexingProgress(beginning="reading the passages") as progress:
        found = make_map(index, space, on_progress=progress.step)
        found.save(index.path)
    passages = quantity(len(found.points), "passage")
    seconds = time.perf_counter() - started
    click.echo(f"{passages} in {quantity(len(found.names), 'group')}, in {seconds:.0f} s")
    click.echo(visible(f"view it with: semsearch serve --index {quoted(str(path))}"))
