"""What the tests of adapters need."""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest

from semsearch import Index

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when it is imported


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run the coroutines among the tests; those of frameworks carry no mark that says so."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def index(tmp_path, hashing):
    """An empty index."""
    with Index.create(tmp_path / "index", hashing) as index:
        yield index
