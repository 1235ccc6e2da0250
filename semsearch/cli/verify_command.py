"""``semsearch verify``: check an index, and repair it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from semsearch.cli.options import existing_index, index_option
from semsearch.cli.render import visible
from semsearch.errors import quantity
from semsearch.index import Index
from semsearch.storage.interface import Fault


@click.command("verify")
@index_option
@click.option("--repair", is_flag=True, help="Rebuild derived data.")
def command(directory: Path | None, repair: bool) -> None:
    """Check the consistency of an index: SQLite, passages, vectors, snapshots, words.

    Each fault is printed with the command that fixes it; the exit status is 1 if there are faults.

    \b
    semsearch verify
    semsearch verify --repair --index indexes/films
    """
    directory = existing_index(directory)
    with Index.open(directory) as index, index.writer() as writer:
        faults = writer.verify()
        _report(faults)
        if repair and any(fault.repairable for fault in faults):
            writer.repair()
            faults = [fault._replace(repairable=False) for fault in writer.verify()]
            click.echo(f"repaired; {quantity(len(faults), 'fault')} left")
            _report(faults)
    if faults:
        click.get_current_context().exit(1)
    click.echo(visible(f"{directory}: no faults"))


def _report(faults: Iterable[Fault]) -> None:
    for fault in faults:
        click.echo(visible(f"{fault.what}; to fix it: {fault.remedy}"))
