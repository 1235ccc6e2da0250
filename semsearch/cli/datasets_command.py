"""``semsearch datasets``: what is published, where it is, and how it gets here."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Group
from semsearch.cli.options import format_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import Entry, console, json_text, print_entries, visible
from semsearch.datasets.fetching import fetch_set
from semsearch.datasets.folder import missing_files, place_of
from semsearch.datasets.registry import KnownSet, known_set, known_sets


@click.group("datasets", cls=Group, page="how-to/evaluate.md")
def command() -> None:
    """List, find and fetch published data sets.

    They lie in the folder that SEMSEARCH_DATA names or, without it, in one among the user's data.
    Each is under the licence of its authors; several allow research or non-commercial use only.

    \b
    semsearch datasets list
    semsearch datasets fetch stsbenchmark sts12
    semsearch datasets path stsbenchmark
    """


@command.command("list")
@format_option("table", "jsonl", description="For people, or one line a set.")
def list_sets(format_name: str) -> None:
    """List the data sets that semsearch knows."""
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
    """Fetch data sets from where they are published.

    What is here already is checked, and stays. What was interrupted goes on where it was.
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
