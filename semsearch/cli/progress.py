"""Progress of long operations: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import click

LINE_EVERY_SECONDS = 10.0


class IndexingProgress:
    """Shows the number of processed items, their rate and the remaining time on standard error.

    A context manager: call `update` after each batch, and `note` for messages in between.

    Args:
        things: the name of the items, in the plural.
        beginning: the text until the first item is processed.
        quiet: show nothing.
    """

    def __init__(
        self,
        things: str,
        beginning: str = "loading, encoding the first batch",
        *,
        quiet: bool = False,
    ) -> None:
        self._things = things
        self._quiet = quiet
        self._bar = _Bar(beginning) if sys.stderr.isatty() and not quiet else None
        self._started = time.perf_counter()
        self._before, self._fraction_before = 0, 0.0
        self._last: int | None = None
        self._last_line = 0.0  # seconds after the start

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
        if self._last is None or done < self._last:
            self._started = time.perf_counter()
            self._before, self._fraction_before = done, fraction or 0.0
            self._last_line = 0.0
        self._last = done
        seconds = time.perf_counter() - self._started
        new = done - self._before
        text = f"{done:,} {self._things}{where}"
        if new:
            text += f", {_rate(new / max(seconds, 1e-9))}"
        if fraction is not None and fraction > self._fraction_before:
            remaining = (1 - fraction) / (fraction - self._fraction_before)
            text += f", {_duration(seconds * remaining)} left"
        if self._bar:
            self._bar.show(text, fraction)
        elif seconds - self._last_line >= LINE_EVERY_SECONDS:
            self._last_line = seconds
            self.note(text)

    def note(self, message: str) -> None:
        """Print a message above the bar."""
        if self._bar:
            self._bar.note(message)
        elif not self._quiet:
            click.echo(message, err=True)


class _Bar:
    """The bar on a terminal. Only this class imports rich, which is slow to import."""

    def __init__(self, beginning: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self.progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True, highlight=False, markup=False, emoji=False),
            transient=True,
        )
        self._task = self.progress.add_task(beginning, total=None)

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


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 1 else f"{1 / per_second:.1f} s each"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
