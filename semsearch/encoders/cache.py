"""The user's cache: what takes long to compute once and is then read by every process."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from semsearch.encoders.hashes import cache_folder, file_sha256
from semsearch.errors import EncoderError

MANIFEST = "manifest.json"


def cached_entry(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, made by `make` unless it is there and sound.

    It appears whole or not at all, with a manifest of its files' SHA-256. Of two processes that
    want it at once, one makes it and the other waits.

    Args:
        name: what the entry is called; all that decides its content is in it.
        make: writes the files into the folder that it is given.

    Raises:
        EncoderError: the cache cannot be written.
    """
    entry = cache_folder() / name
    if _is_sound(entry):
        return entry
    from filelock import FileLock  # seldom needed

    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{entry}.lock"):
            if not _is_sound(entry):
                _make(entry, make)
    except OSError as error:
        raise EncoderError(
            f"the cache {cache_folder()} cannot be written ({error.strerror}); "
            "SEMSEARCH_CACHE names another folder"
        ) from error
    return entry


def _make(entry: Path, make: Callable[[Path], None]) -> None:
    draft = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", dir=entry.parent))
    try:
        make(draft)
        manifest = {file.name: file_sha256(file) for file in draft.iterdir()}
        (draft / MANIFEST).write_text(json.dumps(manifest), "utf-8")
        shutil.rmtree(entry, ignore_errors=True)  # a damaged one
        draft.replace(entry)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_sound(entry: Path) -> bool:
    try:
        manifest = json.loads((entry / MANIFEST).read_text("utf-8"))
        return all(file_sha256(entry / name) == digest for name, digest in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False
