"""Locations of corpora: files, and URLs of files or databases; downloads."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

from semsearch.errors import CorpusError, DownloadError
from semsearch.limits import MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_SECONDS, size_shown
from semsearch.web import check_status, requested

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
                    raise CorpusError(f"{name}: {limit}; download it, then index the file")
                if time.monotonic() > ends:
                    limit = f"takes longer than {MAX_DOWNLOAD_SECONDS:.0f} s"
                    raise CorpusError(f"{name} {limit}; download it, then index it")
                try:
                    file.write(block)
                except OSError as error:
                    reason = error.strerror or error
                    raise DownloadError(f"{name} cannot be stored: {reason}") from error
            media_type = response.headers.get("Content-Type", "").partition(";")[0]
        file.seek(0)
        yield file, media_type.strip().lower()
