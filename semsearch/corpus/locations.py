"""Where a corpus is: a file, or the URL of a file or a database."""

from __future__ import annotations

import re
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import unquote, urlsplit

#: A file, a URL, or standard input.
Location = Path | str | None

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/?#@]*@")
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@")


def is_url(place: str) -> bool:
    """Whether a place is a URL, of whatever scheme."""
    return _URL.match(place) is not None


def is_web(url: str) -> bool:
    """Whether a URL is one of http or https."""
    return _WEB.match(url) is not None


def shown_url(url: str) -> str:
    """A URL without what must not be shown or kept: the password; of the web, the user, too."""
    if is_web(url):
        return _SECRET.sub("", url).partition("#")[0]
    return _PASSWORD.sub(r"\1:***@", url).partition("?")[0]


def file_of(url: str) -> PurePath:
    """The file that a URL ends in: ``/a/report.pdf``."""
    return PurePosixPath(unquote(urlsplit(url).path))
