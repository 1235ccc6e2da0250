"""Stops searches whose results nobody waits for any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from semsearch.errors import IndexStoreError

_is_abandoned: ContextVar[Callable[[], bool]] = ContextVar("is_abandoned")


@contextmanager
def interruptible(is_abandoned: Callable[[], bool]) -> Iterator[None]:
    """Let the searches of a block, in this thread, end early with an error.

    Args:
        is_abandoned: whether nobody waits for them; asked before each stage, and by SQLite.
    """
    token = _is_abandoned.set(is_abandoned)
    try:
        yield
    finally:
        _is_abandoned.reset(token)


def is_interrupted() -> bool:
    """Whether nobody waits for the search of this thread."""
    return _is_abandoned.get(bool)()


def check_interrupted() -> None:
    """Raise IndexStoreError if nobody waits for the search of this thread."""
    if is_interrupted():
        raise IndexStoreError("the search was abandoned")
