"""The writer lock, held by one process at a time; messages of other processes name it."""

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
    """Hold the writer lock of an index. The system releases it when the process dies.

    Args:
        directory: the directory of the lock file.
        wait: wait until the lock is free.
        index: the index, for messages; None for the directory itself.

    Raises:
        IndexBusyError: another process holds it, or this thread does.
    """
    owner = directory / "writer.json"
    lock = FileLock(directory / "writer.lock")
    try:
        _acquire(lock, index or directory, owner, wait=wait)
    except OSError as error:
        raise IndexStoreError(f"cannot write in {directory}: {error.strerror}") from error
    try:
        with suppress(OSError):  # only needed for messages of other processes
            now = datetime.now().astimezone().isoformat(" ", "seconds")
            owner.unlink(missing_ok=True)  # do not write through a link
            owner.write_text(json.dumps({"process": os.getpid(), "since": now}), "utf-8")
        yield
    finally:
        with suppress(OSError):
            owner.unlink(missing_ok=True)
        lock.release()


def _acquire(lock: FileLock, index: Path, owner: Path, *, wait: bool) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        busy = f"{index} is being written by {_description(owner)}"
        if not wait:
            raise IndexBusyError(busy, can_wait=True) from None
        logger.warning("%s; waiting for it", busy)
        try:
            lock.acquire(timeout=-1)
        except RuntimeError:  # it would wait for itself
            raise IndexBusyError(f"{index} is being written by this thread") from None


def _description(owner: Path) -> str:
    """The process that holds the lock, for messages."""
    try:
        holder = json.loads(owner.read_text("utf-8"))
        return f"process {holder['process']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
