"""Closing what was opened when something fails before its owner has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class _Closes(Protocol):
    def close(self) -> None:
        """Release resources."""


@contextmanager
def closed_on_error(opened: _Closes) -> Iterator[None]:
    """Close `opened` if the block raises: its caller never gets it and cannot close it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
