"""HTTP requests, whose failures raise DownloadError."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semsearch.errors import DownloadError, first_line
from semsearch.limits import MAX_SILENCE_SECONDS
from semsearch.version import __version__

if TYPE_CHECKING:
    from httpx2 import Response


@contextmanager
def requested(
    url: str, headers: Mapping[str, str] | None = None, *, shown_as: str | None = None
) -> Iterator[Response]:
    """The streamed response to a GET request. Redirects are followed.

    Args:
        url: http or https.
        headers: sent with the request.
        shown_as: the URL in error messages, if the real one contains a password.

    Raises:
        DownloadError: the server cannot be reached, or sends nothing for MAX_SILENCE_SECONDS.
    """
    import httpx2

    sent = {"User-Agent": f"semsearch/{__version__}", **(headers or {})}
    try:
        with httpx2.stream(
            "GET", url, headers=sent, follow_redirects=True, timeout=MAX_SILENCE_SECONDS
        ) as response:
            yield response
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise DownloadError(f"{shown_as or url} cannot be reached: {reason(error)}") from None


def check_status(response: Response, shown_as: str) -> None:
    """Raise DownloadError unless the server sends the file."""
    if not response.is_success:
        status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        raise DownloadError(f"{shown_as}: {status}")


def reason(error: Exception) -> str:
    """Why a request failed, in one line."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException):
        return f"no answer in {MAX_SILENCE_SECONDS:.0f} s"
    return re.sub(r"^\[Errno -?\d+\] ", "", first_line(error))
