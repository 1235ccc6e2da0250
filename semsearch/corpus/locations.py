"""Locations of corpora: files, and URLs of files or databases; downloads."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from semsearch.corpus.limits import (
    MAX_DOWNLOAD_BYTES,
    MAX_DOWNLOAD_SECONDS,
    MAX_SILENCE_SECONDS,
    size_shown,
)
from semsearch.errors import CorpusError, DownloadError, first_line
from semsearch.version import __version__

if TYPE_CHECKING:
    from httpx2 import Response

#: A file, a URL, or standard input.
Location = Path | str | None

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/?#]*@")
# As SQLAlchemy parses the URLs of databases, a password may contain / and ?, and a user name @. If
# there are several @, all before the last is hidden: the password may contain one by mistake.
_PASSWORD = re.compile(r"(?<=://)([^/:]*):.*@")


def is_url(location: str) -> bool:
    """Whether a location is a URL of any scheme."""
    return _URL.match(location) is not None


def is_web(url: str) -> bool:
    """Whether the scheme of a URL is http or https."""
    return _WEB.match(url) is not None


def shown_url(url: str) -> str:
    """A URL without its password and, for http and https, without its user name."""
    if is_web(url):
        return _SECRET.sub("", url).partition("#")[0]
    return _PASSWORD.sub(r"\1:***@", url).partition("?")[0]


def file_of(url: str) -> PurePath:
    """The path of a URL: ``/a/report.pdf``."""
    return PurePosixPath(unquote(urlsplit(url).path))


def recorded_name(location: Location) -> str:
    """What an index records of a location: a path, or the hash of a URL, which may hold a token.

    It is empty for streams, which cannot be read again.
    """
    if isinstance(location, str):
        return hashlib.blake2b(shown_url(location).encode(), digest_size=16).hexdigest()
    if location is not None:
        with suppress(OSError):  # reported when it is read
            if location.is_file() or location.is_dir():
                return str(location.resolve())
    return ""


@contextmanager
def downloaded(url: str) -> Iterator[IO[bytes]]:
    """The file at a URL, in a temporary file until the block ends.

    Raises:
        CorpusError: the server cannot be reached, refuses, is too slow or sends too much.
    """
    name = shown_url(url)
    ends = time.monotonic() + MAX_DOWNLOAD_SECONDS
    with tempfile.TemporaryFile() as file:
        with requested(url) as response:
            for block in response.iter_bytes():
                file.write(block)
                if file.tell() > MAX_DOWNLOAD_BYTES:
                    limit = f"it is larger than {size_shown(MAX_DOWNLOAD_BYTES)}"
                    raise CorpusError(f"{name}: {limit}; download it, then index the file")
                if time.monotonic() > ends:
                    limit = f"takes longer than {MAX_DOWNLOAD_SECONDS:.0f} s"
                    raise CorpusError(f"{name} {limit}; download it, then index it")
        file.seek(0)
        yield file


@contextmanager
def requested(url: str, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
    """The streamed response to a GET request. Redirects are followed.

    Raises:
        DownloadError: the server cannot be reached, sends nothing for MAX_SILENCE_SECONDS, or
            refuses.
    """
    import httpx2

    name = shown_url(url)
    sent = {"User-Agent": f"semsearch/{__version__}", **(headers or {})}
    try:
        with httpx2.stream(
            "GET", url, headers=sent, follow_redirects=True, timeout=MAX_SILENCE_SECONDS
        ) as response:
            if not response.is_success:
                status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
                raise DownloadError(f"{name}: {status}")
            yield response
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        timed_out = isinstance(error, httpx2.TimeoutException)
        reason = f"no answer in {MAX_SILENCE_SECONDS:.0f} s" if timed_out else first_line(error)
        reason = re.sub(r"^\[Errno -?\d+\] ", "", reason)
        raise DownloadError(f"{name} cannot be reached: {reason}") from None
