"""The pytest plugin of scripts/dev/mutants: which tests execute a line, and runs of these only.

With MUTANTS_RECORD=FILE, each test is a context of the coverage being measured, each shared
fixture is one, too, and child processes have the test's context as well; outcomes and times are
written to the file. With MUTANTS_SELECT=FILE, only the tests in the file are run, in its order.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from coverage import Coverage

#: The context of child processes; the configuration of coverage names this variable.
CHILD = "MUTANTS_CONTEXT"
#: A mutated test is stopped after this many seconds, and this many times its usual duration.
GRACE, FACTOR = 30, 5


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get("MUTANTS_RECORD"):
        config.pluginmanager.register(Recorder(Path(path)))
    if path := os.environ.get("MUTANTS_SELECT"):
        config.pluginmanager.register(Selector(Path(path)))


class Recorder:
    """Records each test's outcome, duration and shared fixtures, and sets coverage's context."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tests: dict[str, dict] = {}
        self.fixtures: dict[str, float] = {}
        self._shared = 0.0  # seconds in shared fixtures since the test began
        self._context = ""

    @contextmanager
    def context(self, name: str) -> Iterator[None]:
        """What runs in the block is recorded for this name."""
        before = self._context
        self._switch(name)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, name: str) -> None:
        self._context = name
        coverage = Coverage.current()
        coverage.switch_context(name)
        os.environ[CHILD] = f"process:{name}" if name else ""
        coverage.config.context = os.environ[CHILD]  # of children that are forked

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record a test's lines, time and shared fixtures."""
        self._shared, began = 0.0, time.monotonic()
        shared = [
            name
            for name, definitions in item._fixtureinfo.name2fixturedefs.items()
            if definitions[-1].scope != "function"
        ]
        self.tests[item.nodeid] = {"outcome": "passed", "fixtures": shared}
        with self.context(item.nodeid):
            result = yield
        self.tests[item.nodeid]["seconds"] = time.monotonic() - began - self._shared
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        """Record the lines and the time of a shared fixture."""
        if fixturedef.scope == "function":
            return (yield)
        began, nested = time.monotonic(), self._context.startswith("fixture:")
        try:
            with self.context(f"fixture:{fixturedef.argname}"):
                return (yield)
        finally:
            self.fixtures[fixturedef.argname] = time.monotonic() - began
            if not nested:
                self._shared += self.fixtures[fixturedef.argname]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what did not pass."""
        if report.outcome != "passed":
            self.tests[report.nodeid]["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        record = {"tests": self.tests, "fixtures": self.fixtures}
        self.path.write_text(json.dumps(record, indent=1), "utf-8")


class Selector:
    """Runs the given tests in the given order, each up to a multiple of its duration."""

    def __init__(self, path: Path) -> None:
        self.seconds: dict[str, float] = json.loads(path.read_text("utf-8"))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select and order the tests."""
        collected = {item.nodeid: item for item in items}
        items[:] = [collected[name] for name in self.seconds if name in collected]
        for item in items:
            limit = GRACE + FACTOR * self.seconds[item.nodeid]
            item.add_marker(pytest.mark.timeout(limit), append=False)
