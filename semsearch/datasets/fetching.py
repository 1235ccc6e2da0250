"""Downloads known data sets into the data folder.

A file appears under its own name only when it is complete: it is written to ``NAME.part``, checked
against its known size and SHA-256, and then renamed. After a lost connection or a killed process,
the download is resumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from semsearch.corpus.sources import requested
from semsearch.datasets.folder import data_folder
from semsearch.datasets.registry import KnownFile, known_set
from semsearch.errors import DatasetError, DownloadError

_RESUMED = "fetch it again to continue"


def fetch_set(name: str, on_progress: Callable[[int, int], None] | None = None) -> Path:
    """Download the missing files of a known set.

    Args:
        name: as in the registry.
        on_progress: called with the number of bytes present and their total.

    Returns:
        The folder or only file of the set.

    Raises:
        DatasetError: the set does not exist, or a file cannot be downloaded, differs from the
            published one, or must be downloaded by hand (the others are downloaded first).
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

        def report(received: int, before: int = done) -> None:
            if on_progress is not None:
                on_progress(before + received, total)

        fetch_file(file, target, report)
        done += file.size or 0
    if by_hand:
        others = f" and {len(by_hand) - 1} more" if len(by_hand) > 1 else ""
        raise DownloadError(
            f"{name}: {by_hand[0]}{others} cannot be downloaded automatically; get {known.source}"
        )
    return data_folder() / known.place


def fetch_file(file: KnownFile, target: Path, on_bytes: Callable[[int], None]) -> None:
    """Download one file, unless it is present.

    Args:
        file: its URL, size and SHA-256.
        target: where it is written.
        on_bytes: called with the number of bytes received so far.

    Raises:
        DatasetError: the file cannot be downloaded, or differs from the published one.
    """
    if file.url is None or file.size is None or file.sha256 is None:
        raise DownloadError(f"{file.path} has no known download address")
    if urlsplit(file.url).scheme not in ("http", "https"):
        raise DownloadError(f"{file.url}: only http and https can be fetched")
    try:
        if target.exists():  # possibly in a read-only folder
            if target.stat().st_size != file.size or _sha256(target) != file.sha256:
                raise DownloadError(
                    f"{target} differs from the published file; move it away to download the "
                    "published one"
                )
            on_bytes(file.size)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        if not part.exists() or part.stat().st_size != file.size:
            _receive(file.url, part, file.size, on_bytes)
        if (found := _sha256(part)) != file.sha256:
            part.unlink()
            raise DownloadError(
                f"{file.url} sends a file other than the published one: SHA-256 {found}, "
                f"not {file.sha256}; it was deleted"
            )
        part.replace(target)
    except OSError as error:
        raise DatasetError(
            f"cannot write {target}: {error.strerror or error}; to use another folder, set "
            "SEMSEARCH_DATA"
        ) from error


def _receive(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    """Complete a part file with one request, which asks for the rest of it."""
    received = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if 0 < received < size:
        headers["Range"] = f"bytes={received}-"
    try:
        with requested(url, headers) as response:
            content_range = response.headers.get("Content-Range", "")
            if response.status_code != 206 or not content_range.startswith(f"bytes {received}-"):
                received = 0
            with part.open("ab" if received else "wb") as stream:
                on_bytes(received)
                for block in response.iter_raw():
                    stream.write(block)
                    received += len(block)
                    on_bytes(min(received, size))
                    if received > size:
                        raise DownloadError(f"{url} has more than the expected {size:,} bytes")
    except DownloadError as error:
        raise DownloadError(f"{error}; {_RESUMED}" if part.exists() else str(error)) from None
    if received < size:
        raise DownloadError(f"{url} ended after {received:,} of {size:,} bytes; {_RESUMED}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
