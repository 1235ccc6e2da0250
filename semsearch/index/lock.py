"""One writer at a time, and a name for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from semsearch.errors import IndexBusyError

__all__ = ["writer_lock"]


@contextmanager
def writer_lock(directory: Path, wait_seconds: float = 0) -> Iterator[None]:
    """Hold the right to write an index. The system lets go of it when the process dies.

    Raises:
        IndexBusyError: another process holds it, after `wait_seconds` still.
    """
    owner = directory / "writer.json"
    lock = FileLock(directory / "writer.lock", timeout=wait_seconds)
    try:
        lock.acquire()
    except Timeout:
        raise IndexBusyError(f"{directory} is being written by {_told(owner)}") from None
    try:
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        owner.write_text(json.dumps({"process": os.getpid(), "since": now}), "utf-8")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _told(owner: Path) -> str:
    try:
        told = json.loads(owner.read_text("utf-8"))
        return f"process {told['process']} since {told['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
