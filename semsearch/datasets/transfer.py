"""One HTTP request into a part file that can be gone on with."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from semsearch.errors import DatasetError, DownloadError
from semsearch.version import __version__

TIMEOUT_SECONDS = 30.0
BLOCK_BYTES = 1 << 18
_RANGE_NOT_SATISFIABLE = 416


class BrokenOffError(DownloadError):
    """The connection ended before the file did; what came is kept."""


def receive(url: str, part: Path, size: int, on_bytes: Callable[[int], None]) -> None:
    """Bring a part file to its full size.

    What it holds is gone on with if the server says that its file is still the one that the
    part is of (``If-Range``, RFC 9110 section 13.1.5): by the entity tag or, without a strong
    one, the date that came with the first bytes and lies beside the part. Else it starts over.

    Args:
        url: where the file is, by http or https.
        part: the beginning of the file, or not there yet.
        size: how many bytes there must be; one more and the transfer ends.
        on_bytes: called with the number of bytes that are there.

    Raises:
        BrokenOffError: the connection broke off, or stood still for TIMEOUT_SECONDS.
        DatasetError: the server refuses or cannot be reached, the file is not of that size, or
            the part cannot be written.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url}: only http and https can be fetched")
    tag_file = part.with_name(f"{part.name}.tag")
    there, tag = _resumable(part, tag_file, size)
    request = urllib.request.Request(  # noqa: S310 - the opener knows http and https only
        url, headers={"User-Agent": f"semsearch/{__version__}"}
    )
    if there:
        request.add_header("Range", f"bytes={there}-")
        request.add_header("If-Range", tag)
    with closing(_opened(request)) as response:
        if response.status != 206 or not _begins_at(response, there):
            there = 0
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and there + int(length) != size:
            raise DownloadError(f"{url} has {there + int(length):,} bytes, not the {size:,} known")
        try:
            if not there:
                part.unlink(missing_ok=True)  # it is not of the file with this tag
                tag_file.write_text(_tag(response), "utf-8")
            with part.open("ab" if there else "wb") as stream:
                _copy(response, stream, url, there, size, on_bytes)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise DatasetError(f"cannot write {part}: {error.strerror}") from error


def _resumable(part: Path, tag_file: Path, size: int) -> tuple[int, str]:
    """How many bytes can be gone on with, and the mark of the file that they are of."""
    try:
        there, tag = part.stat().st_size, tag_file.read_text("utf-8")
    except (OSError, ValueError):
        return 0, ""
    is_header = tag.isascii() and tag.isprintable()
    return (there, tag) if tag and is_header and there < size else (0, "")


def _tag(response: HTTPResponse) -> str:
    tag = response.headers.get("ETag", "")
    # A weak one says only that two files mean the same.
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _begins_at(response: HTTPResponse, offset: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")


def _opened(request: urllib.request.Request) -> HTTPResponse:
    url = request.full_url
    opener = urllib.request.OpenerDirector()  # that of `build_opener` reads local files, too
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    try:
        response = opener.open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _RANGE_NOT_SATISFIABLE and request.has_header("Range"):
            request.remove_header("Range")
            return _opened(request)
        raise DownloadError(f"{url}: HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise DownloadError(f"{url} cannot be reached: {_reason(error.reason)}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError(f"{url} cannot be reached: {_reason(error)}") from None
    if not isinstance(response, HTTPResponse):
        raise DownloadError(f"{url} cannot be reached")
    return response


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {TIMEOUT_SECONDS:.0f} s"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _copy(
    response: HTTPResponse,
    stream: BinaryIO,
    url: str,
    there: int,
    size: int,
    on_bytes: Callable[[int], None],
) -> None:
    on_bytes(there)
    while there <= size:
        try:
            block = response.read1(BLOCK_BYTES)
        except (OSError, HTTPException) as error:
            raise BrokenOffError(_broken_off(url, there, size, _reason(error))) from None
        if not block:
            break
        stream.write(block)
        there += len(block)
        on_bytes(min(there, size))
    if there > size:
        raise DownloadError(f"{url} has more than the {size:,} bytes known")
    if there < size:
        raise BrokenOffError(_broken_off(url, there, size, "the connection ended"))


def _broken_off(url: str, there: int, size: int, reason: str) -> str:
    return (
        f"{url} broke off after {there:,} of {size:,} bytes ({reason}); "
        "fetch it again to go on from there"
    )
