"""The output of ``semsearch`` without a command: the indexes here, and what to do next."""

from __future__ import annotations

import os
from pathlib import Path

import click

from semsearch.cli.options import INDEXES, indexes_here
from semsearch.cli.render import visible
from semsearch.errors import SemsearchError, quantity, quoted


def show_overview() -> None:
    """Print the overview."""
    places = {visible(str(place)): place for place in indexes_here()}
    if not places:
        click.echo(f"No index under {INDEXES}/ yet.\n")
        _show_columns(
            ("semsearch index --sample", "index the sample corpus"),
            ("semsearch index corpus.csv", "index a CSV file, into indexes/corpus"),
            ("semsearch --help", "all commands"),
        )
        return
    _show_columns(*((name, _documents(place)) for name, place in places.items()), indent="")
    is_known = len(places) == 1 or "SEMSEARCH_INDEX" in os.environ
    named = "" if is_known else f" --index {quoted(next(iter(places)))}"
    click.echo()
    _show_columns(
        (f'semsearch query "…"{named}', "search"),
        (f"semsearch info{named}", "what an index holds"),
        ("semsearch serve", "serve all of them over HTTP"),
        ("semsearch --help", "all commands"),
    )


def _documents(place: Path) -> str:
    """The number of documents of an index, or the error of opening it."""
    from semsearch.index import Index

    try:
        with Index.open(place) as index:
            count = index.count()
    except SemsearchError as error:
        return visible(str(error))
    return quantity(count, "document")


def _show_columns(*rows: tuple[str, str], indent: str = "  ") -> None:
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        click.echo(f"{indent}{left:{width}}  {right}")
