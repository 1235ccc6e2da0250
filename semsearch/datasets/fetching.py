"""Downloads known data sets into the data folder.

A file appears under its own name only when it is complete: it is written to ``NAME.part``, checked
against its known size and SHA-256, and then renamed. After a lost connection or a killed process,
the download is resumed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from semsearch.corpus.locations import requested
from semsearch.datasets.folder import data_folder
from semsearch.datasets.registry import KnownFile, known_set
from semsearch.errors import DatasetError, DownloadError, first_line

if TYPE_CHECKING:
    from httpx2 import Response

logger = logging.getLogger(__name__)

#: The maximum number of connections per file; one that receives nothing is the last.
ATTEMPTS = 4


class ConnectionLostError(DownloadError):
    """The connection ended before the file was complete; the received part is kept."""


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
    try:
        if _is_present(target, file):  # possibly in a read-only folder
            on_bytes(file.size)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        if not part.exists() or part.stat().st_size != file.size:
            _download(file.url, part, file.size, on_bytes)
        _finish(part, target, file)
    except OSError as error:
        raise DatasetError(
            f"cannot write {target}: {error.strerror or error}; to use another folder, set "
            "SEMSEARCH_DATA"
        ) from error


def _is_present(target: Path, file: KnownFile) -> bool:
    if not target.exists():
        return False
    if target.stat().st_size != file.size or _sha256(target) != file.sha256:
        raise DownloadError(
            f"{target} differs from the published file; move it away to download the published one"
        )
    return True


def _download(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url}: only http and https can be fetched")
    for attempt in range(1, ATTEMPTS + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            _receive(url, part, size, on_bytes)
        except ConnectionLostError as error:
            if attempt == ATTEMPTS or part.stat().st_size <= before:
                raise
            logger.warning("%s; trying again", error)
        else:
            return


def _receive(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    """Complete a part file with one request.

    The download is resumed if the server sends the rest; its digest is checked at the end.
    """
    start = part.stat().st_size if part.exists() else 0
    start = start if start < size else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with requested(url, headers) as response:
        content_range = response.headers.get("Content-Range", "")
        if response.status_code != 206 or not content_range.startswith(f"bytes {start}-"):
            start = 0
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and start + int(length) != size:
            raise DownloadError(
                f"{url} has {start + int(length):,} bytes, not the expected {size:,}"
            )
        _append(response, part, url, start, size, on_bytes)


def _append(
    response: Response,
    part: Path,
    url: str,
    start: int,
    size: int,
    on_bytes: Callable[[int], None],
) -> None:
    import httpx2

    received = start
    lost = "the connection ended"
    with part.open("ab" if start else "wb") as stream:
        on_bytes(received)
        try:
            for block in response.iter_raw():
                stream.write(block)
                received += len(block)
                on_bytes(min(received, size))
                if received > size:
                    raise DownloadError(f"{url} has more than the expected {size:,} bytes")
        except httpx2.HTTPError as error:
            lost = first_line(error)
    if received < size:
        raise ConnectionLostError(
            f"{url}: the download stopped after {received:,} of {size:,} bytes ({lost}); "
            "fetch it again to resume"
        )


def _finish(part: Path, target: Path, file: KnownFile) -> None:
    found = _sha256(part)
    if found != file.sha256:
        part.unlink()
        raise DownloadError(
            f"{file.url} sends a file other than the published one: SHA-256 {found}, "
            f"not {file.sha256}; it was deleted"
        )
    part.replace(target)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
