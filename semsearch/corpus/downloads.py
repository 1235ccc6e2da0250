"""Fetches a file from a web server, within limits of size and time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from semsearch.corpus.locations import shown_url
from semsearch.errors import CorpusTooLargeError, DownloadError, first_line
from semsearch.limits import (
    MAX_DOWNLOAD_BYTES,
    MAX_DOWNLOAD_SECONDS,
    MAX_SILENCE_SECONDS,
    size_shown,
)
from semsearch.version import __version__

if TYPE_CHECKING:
    from httpx2 import Response


@contextmanager
def downloaded(url: str) -> Iterator[tuple[IO[bytes], str]]:
    """The file at a URL, in a temporary file until the block ends, and its media type.

    Raises:
        CorpusError: the server cannot be reached, refuses, is too slow or sends too much.
    """
    import httpx2

    name = shown_url(url)
    with tempfile.TemporaryFile() as file:
        try:
            with httpx2.stream(
                "GET",
                url,
                follow_redirects=True,
                timeout=MAX_SILENCE_SECONDS,
                headers={"User-Agent": f"semsearch/{__version__}"},
            ) as response:
                if not response.is_success:
                    told = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
                    raise DownloadError(f"{name}: {told}")
                _receive(response, file, name)
                media_type = response.headers.get("Content-Type", "").partition(";")[0]
        except httpx2.TimeoutException:
            silence = f"no answer in {MAX_SILENCE_SECONDS:.0f} s"
            raise DownloadError(f"{name} cannot be reached: {silence}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise DownloadError(f"{name} cannot be reached: {first_line(error)}") from None
        except OSError as error:
            raise DownloadError(f"{name} cannot be kept: {error.strerror or error}") from error
        file.seek(0)
        yield file, media_type.strip().lower()


def _receive(response: Response, file: IO[bytes], name: str) -> None:
    limit = f"it is larger than {size_shown(MAX_DOWNLOAD_BYTES)}; download it, then index the file"
    ends = time.monotonic() + MAX_DOWNLOAD_SECONDS
    received = 0
    for block in response.iter_bytes():
        received += len(block)
        if received > MAX_DOWNLOAD_BYTES:
            raise CorpusTooLargeError(f"{name}: {limit}")
        if time.monotonic() > ends:
            seconds = f"{MAX_DOWNLOAD_SECONDS:.0f} s"
            raise CorpusTooLargeError(
                f"{name} takes longer than {seconds}; download it, then index it"
            )
        file.write(block)
