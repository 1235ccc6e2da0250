"""Progress of long operations: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

import click

from semsearch.cli.render import visible

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_EVERY_SECONDS = 30.0


class IndexingProgress:
    """Shows what is done on standard error.

    A context manager: call `update` or `step` after each batch, and `note` for messages in between.

    Args:
        things: the name of the items, in the plural, for `update`.
        beginning: the text until the first item is processed.
        quiet: show nothing.
    """

    def __init__(
        self,
        things: str = "",
        beginning: str = "loading, encoding the first batch",
        *,
        quiet: bool = False,
    ) -> None:
        self._things = things
        self._quiet = quiet
        self._bar = _bar() if sys.stderr.isatty() and not quiet else None
        self._task = self._bar.add_task(beginning, total=None) if self._bar else None
        self._step = beginning
        self._last_line = time.perf_counter()

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the bar, before a question or at the end."""
        if self._bar:
            self._bar.stop()

    def update(self, done: int, fraction: float | None, where: str = "") -> None:
        """Show the number of processed items, and the fraction of the work if it is known."""
        self._show("", f"{done:,} {self._things}{where}", fraction)

    def of(self, done: int, total: int) -> None:
        """`update`, given the number of all items."""
        self.update(done, done / max(1, total))

    def step(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done, whose number of items is `total`, or 0 if unknown."""
        if total:
            self._show(name, f"{name} {done:,} of {total:,}", done / total)
        else:
            self._show(name, name, None)

    def _show(self, step: str, text: str, fraction: float | None) -> None:
        if self._bar and self._task is not None:
            if step != self._step:  # each step has its own remaining time
                self._bar.reset(self._task)
                self._step = step
            total = None if fraction is None else 1.0
            self._bar.update(self._task, description=text, completed=fraction, total=total)
        elif time.perf_counter() - self._last_line >= LINE_EVERY_SECONDS:
            self._last_line = time.perf_counter()
            self.note(text if fraction is None else f"{text}, {fraction:.0%} done")

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        if self._bar:
            self._bar.console.print(visible(message))
        elif not self._quiet:
            click.echo(visible(message), err=True)


def _bar() -> Progress:
    """The bar on a terminal. Only here is rich imported, which is slow."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, highlight=False, markup=False, emoji=False),
        transient=True,
        redirect_stdout=False,  # to a file, for example
    )
