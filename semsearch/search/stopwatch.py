"""Times the stages of a search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from semsearch.records import Stage


class Stopwatch:
    """Measures the total time of each stage of a search."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}

    @contextmanager
    def __call__(self, name: str, plan: str = "") -> Iterator[None]:
        """Add the time of a block to the stage of this name."""
        started = time.perf_counter()
        yield
        spent = (time.perf_counter() - started) * 1000
        before = self._stages.get(name, Stage(name, 0))
        self._stages[name] = Stage(name, before.milliseconds + spent, plan or before.plan)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of their first start."""
        return tuple(self._stages.values())
