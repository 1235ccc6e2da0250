"""The options of commands that remove documents, and the question before removing many."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible

if TYPE_CHECKING:
    from semsearch.indexing.removal import Allowance, Removal

removals_option = click.option(
    "--allow-removals",
    is_flag=True,
    help="Allow removing more than ten documents and a tenth of the index, without asking.",
)

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only report what would be done; nothing is written."
)


def allowance(allowed: bool, progress: IndexingProgress | None = None) -> Allowance:
    """Whether many documents may be removed: by the option or, on a terminal, by a question."""
    if allowed or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return allowed

    def ask(removal: Removal) -> bool:
        if progress:
            progress.stop()
        return click.confirm(visible(f"Remove {removal}?"), err=True)

    return ask
