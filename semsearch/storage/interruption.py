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


def abandonment() -> Callable[[], bool] | None:
    """Tells whether nobody waits for the searches of this thread; None outside of such a block."""
    return _is_abandoned.get(None)


def check_interrupted() -> None:
    """Raise IndexStoreError if nobody waits for the search of this thread."""
    is_abandoned = abandonment()
    if is_abandoned and is_abandoned():
        raise IndexStoreError("the search was abandoned")
