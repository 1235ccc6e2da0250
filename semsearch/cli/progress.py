"""Progress of long operations: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import click

LINE_EVERY_SECONDS = 30.0


class IndexingProgress:
    """Shows the number of processed items, their rate and the remaining time on standard error.

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
        self._bar = _Bar(beginning) if sys.stderr.isatty() and not quiet else None
        self._step: str | None = None
        self._last = 0
        self._started = self._last_line = time.perf_counter()
        self._before, self._fraction_before = 0, 0.0

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the bar, before a question or at the end."""
        if self._bar:
            self._bar.progress.stop()

    def update(self, done: int, fraction: float | None, where: str = "") -> None:
        """Show the number of processed items, and the fraction of the work if it is known.

        The rate is measured from the first call, without the time for loading a model. A lower
        number than in the last call starts a new stage with its own rate.
        """
        self._show("", f"{done:,} {self._things}{where}", done, fraction)

    def step(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done; each step has its own rate.

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
        now = time.perf_counter()
        if step != self._step or done < self._last:
            self._step, self._started = step, now
            self._before, self._fraction_before = done, fraction or 0.0
            if self._bar:
                self._bar.begin()
        self._last = done
        seconds = now - self._started
        new = done - self._before
        if new:
            text += f", {_rate(new / max(seconds, 1e-9))}"
        if fraction is not None and fraction > self._fraction_before:
            remaining = (1 - fraction) / (fraction - self._fraction_before)
            text += f", {_duration(seconds * remaining)} left"
        if self._bar:
            self._bar.show(text, fraction)
        elif now - self._last_line >= LINE_EVERY_SECONDS:
            self._last_line = now
            self.note(text)

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        if self._bar:
            self._bar.note(message)
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


class _Bar:
    """The bar on a terminal. Only this class imports rich, which is slow to import."""

    def __init__(self, beginning: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self.progress = Progress(
            SpinnerColumn(),
            TimeElapsedColumn(Column(no_wrap=True)),
            BarColumn(None, table_column=Column(max_width=40)),  # narrower beside a long text
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True, highlight=False, markup=False, emoji=False),
            transient=True,
        )
        self._task = self.progress.add_task(beginning, total=None)

    def begin(self) -> None:
        """Begin a new stage, with its own elapsed time."""
        self.progress.remove_task(self._task)
        self._task = self.progress.add_task("", total=None)

    def show(self, text: str, fraction: float | None) -> None:
        """Show the fraction of the work that is done; None if it is unknown."""
        total = None if fraction is None else 1.0
        self.progress.update(self._task, description=text, completed=fraction, total=total)

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        from rich.text import Text

        self.progress.console.print(Text(message))


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show a spinner with a text on a terminal while a block runs."""
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(on)):
        yield


def _place(name: str, place: int, names: Sequence[str]) -> str:
    return name if len(names) == 1 else f"{name} ({place + 1} of {len(names)})"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 1 else f"{1 / per_second:.1f} s each"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
