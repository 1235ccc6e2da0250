"""One writer at a time, and a name for it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from semsearch.errors import IndexBusyError, IndexStoreError

logger = logging.getLogger(__name__)


@contextmanager
def writer_lock(
    directory: Path, *, wait: bool = False, index: Path | None = None
) -> Iterator[None]:
    """Hold the right to write an index. The system lets go of it when the process dies.

    Args:
        directory: where the lock is kept.
        wait: whether to wait until it is free.
        index: what is locked; None for the directory itself.

    Raises:
        IndexBusyError: another process holds it.
    """
    owner = directory / "writer.json"
    lock = FileLock(directory / "writer.lock")
    try:
        _acquire(lock, index or directory, owner, wait=wait)
    except OSError as error:
        raise IndexStoreError(f"cannot write in {directory}: {error.strerror}") from error
    try:
        with suppress(OSError):  # it is a courtesy to others
            now = datetime.now().astimezone().isoformat(" ", "seconds")
            owner.unlink(missing_ok=True)  # were it a link, this would be written where it leads
            owner.write_text(json.dumps({"process": os.getpid(), "since": now}), "utf-8")
        yield
    finally:
        with suppress(OSError):  # it may be another's, or being read
            owner.unlink(missing_ok=True)
        lock.release()


def _acquire(lock: FileLock, index: Path, owner: Path, *, wait: bool) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        busy = f"{index} is being written by {_told(owner)}"
        if not wait:
            raise IndexBusyError(f"{busy}; --wait waits for it") from None
        logger.warning("%s; waiting for it", busy)
        lock.acquire(timeout=-1)


def _told(owner: Path) -> str:
    try:
        told = json.loads(owner.read_text("utf-8"))
        return f"process {told['process']} since {told['since']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
