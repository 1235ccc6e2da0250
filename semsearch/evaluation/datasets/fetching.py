"""Downloads known data sets into the data folder.

A file appears under its own name only when it is complete: it is written to ``NAME.part``, checked
against its known SHA-256, and then renamed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from semsearch.corpus.sources import requested
from semsearch.errors import DownloadError
from semsearch.evaluation.datasets.registry import KnownFile, data_folder, known_set


def fetch_set(
    name: str, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Path:
    """Download the missing files of a known set.

    Args:
        name: as in the registry.
        on_progress: called with the number of bytes present and their total.

    Returns:
        The folder or only file of the set.

    Raises:
        DatasetError: the set does not exist, or a file cannot be downloaded, differs from the
            published one, or must be downloaded by hand (the others are downloaded first).
        OSError: a file cannot be written.
    """
    known = known_set(name)
    total = sum(file.size or 0 for file in known.files)
    done = 0
    for file in known.files:
        if file.url is not None:

            def report(received: int, before: int = done) -> None:
                on_progress(before + received, total)

            fetch_file(file, report)
            done += file.size or 0
    if by_hand := known.missing_files():
        others = f" and {len(by_hand) - 1} more" if len(by_hand) > 1 else ""
        raise DownloadError(
            f"{name}: {by_hand[0].place}{others} cannot be downloaded automatically; "
            f"get {known.source}"
        )
    return data_folder() / known.place


def fetch_file(file: KnownFile, on_bytes: Callable[[int], None]) -> None:
    """Download one file that has a URL, unless it is present.

    Args:
        file: the file.
        on_bytes: called with the number of bytes received so far.

    Raises:
        DownloadError: the file cannot be downloaded, or differs from the published one.
        OSError: the file cannot be written.
    """
    target, size = file.place, file.size or 0
    if target.exists():  # possibly in a read-only folder
        with target.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                raise DownloadError(
                    f"{target} differs from the published file; move it away to download the "
                    "published one"
                )
        on_bytes(size)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    digest, received = hashlib.sha256(), 0
    headers = {"Accept-Encoding": "identity"}
    with requested(str(file.url), headers) as response, part.open("wb") as stream:
        on_bytes(received)
        for block in response.iter_raw():
            stream.write(block)
            digest.update(block)
            received += len(block)
            on_bytes(min(received, size))
    if digest.hexdigest() != file.sha256:
        part.unlink()
        raise DownloadError(
            f"{file.url} sent {received:,} bytes that differ from the {size:,} published ones"
        )
    part.replace(target)
