"""The writer lock: the threads of a process queue for it, other processes are refused or wait."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Lock, get_ident

from filelock import FileLock, Timeout

from semsearch.errors import IndexBusyError, IndexStoreError

logger = logging.getLogger(__name__)


@contextmanager
def writer_lock(directory: Path, *, wait: float = 0, index: Path | None = None) -> Iterator[None]:
    """Hold the writer lock of an index. The system releases it when the process dies.

    Args:
        directory: the directory of the lock file.
        wait: how many seconds to wait for another process; threads of this one are waited for
            without limit.
        index: the index, for messages; None for the directory itself.

    Raises:
        IndexBusyError: another process holds it after these seconds, or this thread does.
    """
    index = index or directory
    owner = directory / "writer.json"
    lock = FileLock(directory / "writer.lock")
    # A forked process has its own queues: nobody there would release those of its parent.
    queue = _queues.setdefault((os.getpid(), directory.resolve()), WriterQueue())
    with queue.turn(index):
        try:
            _acquire(lock, index, owner, wait)
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


class WriterQueue:
    """The threads of this process that write an index, one at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: int | None = None  # the one that writes

    @contextmanager
    def turn(self, index: Path) -> Iterator[None]:
        """Wait for the threads before this one, then keep the others waiting.

        Raises:
            IndexBusyError: this thread is writing already.
        """
        if self._thread == get_ident():
            raise IndexBusyError(f"{index} is being written by this thread")
        with self._lock:
            self._thread = get_ident()
            try:
                yield
            finally:
                self._thread = None


#: The queues of writers, by process and directory.
_queues: dict[tuple[int, Path], WriterQueue] = {}


def _acquire(lock: FileLock, index: Path, owner: Path, wait: float) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        busy = f"{index} is being written by {_description(owner)}"
        if wait:
            logger.warning("%s; waiting for it", busy)
        try:
            lock.acquire(timeout=wait)
        except Timeout:
            raise IndexBusyError(busy, can_wait=True) from None


def _description(owner: Path) -> str:
    """The process that holds the lock, for messages."""
    try:
        holder = json.loads(owner.read_text("utf-8"))
        return f"process {holder['process']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
