"""``semsearch datasets``: list and download published data sets."""

from __future__ import annotations

import click
from rich.text import Text

from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import Entry, console, print_entries
from semsearch.evaluation.datasets.fetching import fetch_set
from semsearch.evaluation.datasets.registry import known_set, known_sets


@click.group("datasets")
def datasets_command() -> None:
    """List and download published data sets.

    They are stored in the folder SEMSEARCH_DATA or, by default, in the user's data directory. Each
    has the licence of its authors; several allow only research or non-commercial use.

    \b
    semsearch datasets list
    semsearch datasets fetch stsbenchmark sts12
    """


@datasets_command.command("list")
def list_sets() -> None:
    """List the known data sets."""
    entries = []
    for known in known_sets().values():
        rows = ", ".join(f"{part} {count:,}" for part, count in known.rows.items())
        about = Text(f"{known.about}\n{rows}\n{known.licence}", style="dim")
        missing = len(known.missing_files())
        here = "no" if missing == len(known.files) else "partly" if missing else "yes"
        entries.append(Entry([known.name, known.kind.value], Text(here), about))
    print_entries(console(), ["name", "kind", "here"], entries, indent=4)


@datasets_command.command("fetch")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Download data sets from their publishers, and print their folders.

    Existing files are verified and kept.
    """
    for known in [known_set(name) for name in names]:
        with IndexingProgress(beginning="connecting") as progress:
            place = fetch_set(
                known.name, lambda done, total: progress.step("kB", done // 1000, total // 1000)
            )
            progress.note(f"{known.name}: licence: {known.licence} ({known.home})")
        click.echo(str(place))
