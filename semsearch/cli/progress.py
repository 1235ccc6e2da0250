"""Progress of long operations: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_EVERY_SECONDS = 30.0


class IndexingProgress:
    """Shows the number of processed items and the remaining time on standard error.

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
        self._step: str | None = None
        self._last = 0
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
        """Show the number of processed items, and the fraction of the work if it is known.

        A lower number than in the last call starts a new stage with its own remaining time.
        """
        self._show("", f"{done:,} {self._things}{where}", done, fraction)

    def step(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done; each step has its own remaining time.

        Args:
            name: of the step, and of what it processes.
            done: the number of items processed.
            total: the number of all items; 0 if it is unknown.
        """
        if total:
            self._show(name, f"{name} {done:,} of {total:,}", done, done / total)
        else:
            self._show(name, name, 0, None)

    def _show(self, step: str, text: str, done: int, fraction: float | None) -> None:
        is_new = step != self._step or done < self._last
        self._step, self._last = step, done
        if self._bar and self._task is not None:
            if is_new:
                self._bar.remove_task(self._task)
                self._task = self._bar.add_task("", total=None)
            total = None if fraction is None else 1.0
            self._bar.update(self._task, description=text, completed=fraction, total=total)
        elif time.perf_counter() - self._last_line >= LINE_EVERY_SECONDS:
            self._last_line = time.perf_counter()
            self.note(text if fraction is None else f"{text}, {fraction:.0%} done")

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        if self._bar:
            from rich.text import Text

            self._bar.console.print(Text(message))
        elif not self._quiet:
            click.echo(message, err=True)


class EvaluationProgress(IndexingProgress):
    """Shows what each system has done on each set; entered once per set.

    Args:
        sets: the names of the sets, in their order.
        systems: the names of the systems.
    """

    def __init__(self, sets: Sequence[str], systems: Sequence[str]) -> None:
        super().__init__(beginning="evaluating")
        self._sets, self._systems = sets, systems
        self._set = -1

    def __enter__(self) -> Self:
        self._set += 1
        return super().__enter__()

    def show(self, system: str, items: str, done: int, total: int) -> None:
        """Show how many items of the set a system has processed."""
        where = _place(system, self._systems.index(system), self._systems)
        if len(self._sets) > 1:
            where = f"{_place(self._sets[self._set], self._set, self._sets)}, {where}"
        self.step(f"{where}: {items}", done, total)


def _bar() -> Progress:
    """The bar on a terminal. Only here is rich imported, which is slow."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TimeElapsedColumn(Column(no_wrap=True)),
        BarColumn(None, table_column=Column(max_width=40)),  # narrower beside a long text
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, highlight=False, markup=False, emoji=False),
        transient=True,
    )


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show a spinner with a text on a terminal while a block runs."""
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(on)):
        yield


def _place(name: str, place: int, names: Sequence[str]) -> str:
    return name if len(names) == 1 else f"{name} ({place + 1} of {len(names)})"
