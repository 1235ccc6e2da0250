"""Interruption and resumption of training runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.errors import TrainingStoppedError, with_code

#: Options for the files of an earlier run.
run_options = together(
    click.option("--resume", is_flag=True, help="Continue a run that was stopped."),
    click.option("--overwrite", is_flag=True, help="Replace the model in DIR."),
)


@contextmanager
def interruptible(progress: IndexingProgress) -> Iterator[None]:
    """On Ctrl-C, report what was saved, and exit with the usual status."""
    try:
        yield
    except TrainingStoppedError as stopped:
        progress.note(visible(with_code(stopped)))
    except KeyboardInterrupt:
        progress.note("interrupted")
    else:
        return
    click.get_current_context().exit(INTERRUPTED_STATUS)
