"""A training run that is interrupted: the message, and how to resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import TrainingStoppedError, with_code

#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED_STATUS = 130

#: What may be done to what an earlier run left.
run_options = together(
    click.option("--resume", is_flag=True, help="Go on with a run that was stopped."),
    click.option("--overwrite", is_flag=True, help="Replace what is in DIR."),
)


@contextmanager
def interruptible(progress: IndexingProgress) -> Iterator[None]:
    """Ctrl-C ends the command with what is safe, and the exit status that shells expect."""
    try:
        yield
    except TrainingStoppedError as stopped:
        progress.note(visible(with_code(stopped)))
    except KeyboardInterrupt:
        progress.note("interrupted")
    else:
        return
    click.get_current_context().exit(INTERRUPTED_STATUS)
