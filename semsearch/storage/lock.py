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
    with _turn(directory, index):
        try:
            _acquire(lock, index, owner, wait)
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


#: The threads of this process that write, one at a time, by process and directory. A forked process
#: has its own queues: nobody there would release those of its parent.
_queues: dict[tuple[int, Path], Lock] = {}
_writing: dict[tuple[int, Path], int] = {}


@contextmanager
def _turn(directory: Path, index: Path) -> Iterator[None]:
    """Wait for the threads of this process that came before this one."""
    key = os.getpid(), directory.resolve()
    if _writing.get(key) == get_ident():
        raise IndexBusyError(f"{index} is being written by this thread")
    with _queues.setdefault(key, Lock()):
        _writing[key] = get_ident()
        try:
            yield
        finally:
            del _writing[key]


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
            raise IndexBusyError(busy) from None


def _description(owner: Path) -> str:
    """The process that holds the lock, for messages."""
    try:
        holder = json.loads(owner.read_text("utf-8"))
        return f"process {holder['process']} since {holder['since']}"
    except (OSError, ValueError, KeyError):
        return "another process"
