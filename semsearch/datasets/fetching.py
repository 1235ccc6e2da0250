"""Known data sets from where they are published into the folder of data sets.

A file comes under its own name only when it is whole: it grows as ``NAME.part``, is checked
against the size and SHA-256 that are known, and then renamed. A lock beside it lets one process
fetch it while others wait. What has come stays when the connection breaks off or the process dies.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from semsearch.datasets.folder import data_folder
from semsearch.datasets.registry import KnownFile, known_set
from semsearch.datasets.transfer import BrokenOffError, receive
from semsearch.errors import DatasetError, DownloadError

logger = logging.getLogger(__name__)

#: How often a connection may break off, each time further on.
ATTEMPTS = 4


def fetch_set(name: str, on_progress: Callable[[int, int], None] | None = None) -> Path:
    """Fetch the files of a known set that are not here yet.

    Args:
        name: as in the registry.
        on_progress: called with how many bytes are there, and how many it will be.

    Returns:
        The folder or only file of the set.

    Raises:
        DatasetError: there is no such set, a file cannot be fetched or is another one than was
            published, or a file of it can only be got by hand. Then the others are there.
    """
    known = known_set(name)
    total = sum(file.size or 0 for file in known.files)
    done = 0
    by_hand = []
    for file in known.files:
        target = data_folder() / file.path
        if file.url is None:
            if not target.is_file():
                by_hand.append(target)
            continue

        def tell(there: int, before: int = done) -> None:
            if on_progress is not None:
                on_progress(before + there, total)

        fetch_file(file, target, tell)
        done += file.size or 0
    if by_hand:
        others = f" and {len(by_hand) - 1} more" if len(by_hand) > 1 else ""
        raise DownloadError(
            f"{name}: {by_hand[0]}{others} cannot be fetched by a program; get {known.source}"
        )
    return data_folder() / known.place


def fetch_file(file: KnownFile, target: Path, on_bytes: Callable[[int], None]) -> None:
    """Fetch one file, unless it is here.

    Args:
        file: its URL, size and SHA-256.
        target: where it goes.
        on_bytes: called with how many bytes of it are there.

    Raises:
        DatasetError: it cannot be fetched, or what is here or comes is another file.
    """
    if file.url is None or file.size is None or file.sha256 is None:
        raise DownloadError(f"{file.path} has no known source to fetch it from")
    try:
        if _is_here(target, file):  # perhaps in a folder that cannot be written
            on_bytes(file.size)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if _is_here(target, file):
                on_bytes(file.size)
                return
            part = target.with_name(f"{target.name}.part")
            if not part.exists() or part.stat().st_size != file.size:
                _receive(file.url, part, file.size, on_bytes)
            _finish(part, target, file)
    except OSError as error:
        raise DatasetError(f"cannot write {target}: {error.strerror or error}") from error


def _is_here(target: Path, file: KnownFile) -> bool:
    if not target.exists():
        return False
    if target.stat().st_size != file.size or _sha256(target) != file.sha256:
        raise DownloadError(
            f"{target} is not the file that was published; move it away to fetch that"
        )
    return True


def _receive(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            receive(url, part, size, on_bytes)
        except BrokenOffError as error:
            if attempt == ATTEMPTS or part.stat().st_size <= before:
                raise
            logger.warning("%s; trying again", error)
        else:
            return


def _finish(part: Path, target: Path, file: KnownFile) -> None:
    found = _sha256(part)
    part.with_name(f"{part.name}.tag").unlink(missing_ok=True)
    if found != file.sha256:
        part.unlink()
        raise DownloadError(
            f"{file.url} sends another file than was published: SHA-256 {found}, "
            f"not {file.sha256}; it was thrown away"
        )
    part.replace(target)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    file = target.with_name(f".{target.name}.lock")
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("%s is being fetched by another process; waiting for it", target)
        lock.acquire()
    try:
        yield
        with suppress(OSError):  # who holds or makes another one finds the target there
            file.unlink()
    finally:
        lock.release()


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
