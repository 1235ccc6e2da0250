"""The user's cache: SHA-256 of files, and folders of results that take long to compute."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from semsearch.errors import EncoderError

MEMORY = "sha256.json"
#: Smaller files are hashed faster than looked up.
SMALL_BYTES = 1_000_000


def cache_folder() -> Path:
    """The folder of the cache: SEMSEARCH_CACHE, by default in the system's folder for caches."""
    named = os.environ.get("SEMSEARCH_CACHE")
    return Path(named) if named else user_cache_path("semsearch")


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file's content, as hex digits.

    Hashes of large files are cached, and computed again if the file's size, time stamps or inode
    change.
    """
    with file.open("rb") as stream:
        state = os.fstat(stream.fileno())
        if state.st_size < SMALL_BYTES:
            return hashlib.sha256(stream.read()).hexdigest()
        key = str(file.absolute())
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev]
        memory = cache_folder() / MEMORY
        known: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            known = json.loads(memory.read_text("utf-8"))
        if key in known and known[key][1:] == stamp:
            return str(known[key][0])
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    existing = {name: value for name, value in known.items() if Path(name).exists()}
    with suppress(OSError):  # it is computed again next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        draft = memory.with_name(f"{MEMORY}.{os.getpid()}")
        draft.write_text(json.dumps(existing | {key: [digest, *stamp]}), "utf-8")
        draft.replace(memory)
    return digest


def cached_entry(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, created by `make` unless it exists.

    It is created atomically. If two processes need it at once, one creates it and the other waits.

    Args:
        name: the name of the entry, which must determine its content.
        make: writes the files into a given folder.

    Raises:
        EncoderError: the cache cannot be written.
    """
    entry = cache_folder() / name
    if entry.is_dir():
        return entry
    from filelock import FileLock

    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{entry}.lock"):
            if not entry.is_dir():
                for abandoned in entry.parent.glob(f"{name}.draft*"):  # by a process that ended
                    shutil.rmtree(abandoned, ignore_errors=True)
                draft = Path(tempfile.mkdtemp(prefix=f"{name}.draft", dir=entry.parent))
                try:
                    make(draft)
                    draft.replace(entry)
                finally:
                    shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise EncoderError(
            f"the cache {cache_folder()} cannot be written ({error.strerror}); "
            "set SEMSEARCH_CACHE to another folder"
        ) from error
    return entry
