"""``semsearch datasets``: list, locate and download published data sets."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Group
from semsearch.cli.options import format_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import Entry, console, json_text, print_entries, visible
from semsearch.evaluation.datasets.fetching import fetch_set
from semsearch.evaluation.datasets.folder import missing_files, place_of
from semsearch.evaluation.datasets.registry import KnownSet, known_set, known_sets


@click.group("datasets", cls=Group)
def command() -> None:
    """List, locate and download published data sets.

    They are stored in the folder SEMSEARCH_DATA or, by default, in the user's data directory. Each
    has the licence of its authors; several allow only research or non-commercial use.

    \b
    semsearch datasets list
    semsearch datasets fetch stsbenchmark sts12
    semsearch datasets path stsbenchmark
    """


@command.command("list")
@format_option("table", "jsonl", description="A table, or one line per set.")
def list_sets(format_name: str) -> None:
    """List the known data sets."""
    sets = known_sets().values()
    if format_name == "table":
        _print_table(list(sets))
        return
    for known in sets:
        click.echo(json_text(_record(known)))


@command.command("path")
@click.argument("name")
def print_path(name: str) -> None:
    """Print the folder, or the only file, of the data set NAME."""
    click.echo(str(place_of(known_set(name))))


@command.command("fetch")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Download data sets from their publishers.

    Existing files are verified and kept. Interrupted downloads are resumed.
    """
    for name in names:
        known_set(name)
    for name in names:
        with IndexingProgress("kB", "connecting") as progress:

            def show(done: int, total: int, progress: IndexingProgress = progress) -> None:
                progress.update(done // 1000, done / total)

            place = fetch_set(name, show)
            progress.note(visible(f"{name}: {place} (licence: {known_set(name).licence})"))


def _here(known: KnownSet) -> str:
    missing = len(missing_files(known))
    return "no" if missing == len(known.files) else "partly" if missing else "yes"


def _record(known: KnownSet) -> dict[str, Any]:
    return {
        "name": known.name,
        "kind": known.kind.value,
        "about": known.about,
        "rows": dict(known.rows),
        "licence": known.licence,
        "home": known.home,
        "here": _here(known),
        "missing": [file.path for file in missing_files(known)],
    }


def _print_table(sets: list[KnownSet]) -> None:
    from rich.text import Text

    entries = []
    for known in sets:
        rows = ", ".join(f"{part} {count:,}" for part, count in known.rows.items())
        about = Text(f"{rows}\n{known.licence}", style="dim")
        entries.append(Entry([known.name, known.kind.value], Text(_here(known)), about))
    print_entries(console(), ["name", "kind", "here"], entries, indent=4)
