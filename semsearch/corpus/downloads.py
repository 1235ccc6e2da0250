"""Downloads a file from a web server, within limits of size and time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from semsearch.corpus.locations import shown_url
from semsearch.errors import CorpusTooLargeError, DownloadError
from semsearch.limits import MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_SECONDS, size_shown
from semsearch.web import check_status, requested


@contextmanager
def downloaded(url: str) -> Iterator[tuple[IO[bytes], str]]:
    """The file at a URL, in a temporary file until the block ends, and its media type.

    Raises:
        CorpusError: the server cannot be reached, refuses, is too slow or sends too much.
    """
    name = shown_url(url)
    ends = time.monotonic() + MAX_DOWNLOAD_SECONDS
    received = 0
    with tempfile.TemporaryFile() as file:
        with requested(url, shown_as=name) as response:
            check_status(response, name)
            for block in response.iter_bytes():
                received += len(block)
                if received > MAX_DOWNLOAD_BYTES:
                    limit = f"it is larger than {size_shown(MAX_DOWNLOAD_BYTES)}"
                    raise CorpusTooLargeError(f"{name}: {limit}; download it, then index the file")
                if time.monotonic() > ends:
                    limit = f"takes longer than {MAX_DOWNLOAD_SECONDS:.0f} s"
                    raise CorpusTooLargeError(f"{name} {limit}; download it, then index it")
                try:
                    file.write(block)
                except OSError as error:
                    reason = error.strerror or error
                    raise DownloadError(f"{name} cannot be stored: {reason}") from error
            media_type = response.headers.get("Content-Type", "").partition(";")[0]
        file.seek(0)
        yield file, media_type.strip().lower()
