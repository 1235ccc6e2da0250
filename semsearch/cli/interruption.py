"""What a person is told who stops a training run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import TrainingStoppedError

__all__ = ["interruptible"]

#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED_STATUS = 130


@contextmanager
def interruptible(progress: IndexingProgress) -> Iterator[None]:
    """Ctrl-C ends the command with what is safe, and the exit status that shells expect."""
    try:
        yield
    except TrainingStoppedError as stopped:
        progress.note(visible(str(stopped)))
    except KeyboardInterrupt:
        progress.note("interrupted")
    else:
        return
    click.get_current_context().exit(INTERRUPTED_STATUS)
