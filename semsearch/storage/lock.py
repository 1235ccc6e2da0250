"""The writer lock: the threads of a process queue for it, other processes are refused or wait."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any

from filelock import FileLock, Timeout

from semsearch.errors import IndexBusyError, IndexStoreError

logger = logging.getLogger(__name__)

#: The queues of threads, by process and directory: a forked process has its own ones, since nobody
#: there would release those of its parent.
_queues: dict[tuple[int, Path], Any] = {}


@contextmanager
def writer_lock(directory: Path, *, wait: float = 0, index: Path | None = None) -> Iterator[None]:
    """Hold the writer lock of an index, by a file in a directory; messages name `index` instead.

    The system releases it when the process dies. Threads of this one are waited for without limit.

    Raises:
        IndexBusyError: another process holds it after `wait` seconds, or this thread does.
    """
    owner = directory / "writer.json"
    lock = FileLock(directory / "writer.lock")
    with _queues.setdefault((os.getpid(), directory.resolve()), RLock()):
        try:
            _acquire(lock, index or directory, owner, wait)
        except OSError as error:
            raise IndexStoreError(f"cannot write in {directory}: {error.strerror}") from error
        try:
            with suppress(OSError):  # only needed for messages of other processes
                now = datetime.now().astimezone().isoformat(" ", "seconds")
                owner.write_text(json.dumps({"process": os.getpid(), "since": now}), "utf-8")
            yield
        finally:
            with suppress(OSError):
                owner.unlink(missing_ok=True)
            lock.release()


def _acquire(lock: FileLock, index: Path, owner: Path, wait: float) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        try:
            holder = json.loads(owner.read_text("utf-8"))
        except (OSError, ValueError):  # it has just begun or ended
            holder = {"process": "unknown", "since": "now"}
        busy = f"{index} is being written by process {holder['process']} since {holder['since']}"
        if holder["process"] == os.getpid():  # by this thread, as it has no predecessors
            raise IndexBusyError(busy) from None
        if wait:
            logger.warning("%s; waiting for it", busy)
        try:
            lock.acquire(timeout=wait)
        except Timeout:
            raise IndexBusyError(busy) from None
