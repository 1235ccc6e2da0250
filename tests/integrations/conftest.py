"""Fixtures of the adapter tests."""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest

from semsearch import Index

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read on import


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run tests that are coroutines; those of the frameworks have no marker."""
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
