"""Opens files, URLs and standard input; decompresses gzip."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from tempfile import mkstemp
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from semsearch import __version__
from semsearch.corpus.formats import CorpusFormat, format_by_name
from semsearch.errors import BadRowError, CorpusError, DownloadError, first_line

if TYPE_CHECKING:
    from httpx2 import Response

#: The part of a file that its format and encoding are detected from.
HEAD_BYTES = 64 << 10
BLOCK_BYTES = 1 << 20
#: The timeout for a response of a web server.
MAX_SILENCE_SECONDS = 30.0

_GZIP_MAGIC = b"\x1f\x8b"

#: A file, a URL, or standard input.
Location = Path | str | None

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/?#]*@")
# As SQLAlchemy parses the URLs of databases, a password may contain / and ?, and a user name @. If
# there are several @, all before the last is hidden: the password may contain one by mistake.
_PASSWORD = re.compile(r"(?<=://)([^/:]*):.*@")


class Progress:
    """How much has been read, in bytes as stored.

    Args:
        total: the size of all files; None if unknown.
    """

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._earlier_files = 0
        self.position = 0  #: in the current file

    @property
    def fraction(self) -> float | None:
        """From 0 to 1, or None if unknown."""
        if self._total is None:
            return None
        return min((self._earlier_files + self.position) / max(self._total, 1), 1.0)

    def end_file(self, size: int) -> None:
        """Count a file of this size as read."""
        self._earlier_files += size
        self.position = 0


@dataclass(frozen=True)
class Source:
    """One open file of a corpus, or a copy of what standard input or a URL had.

    Args:
        name: its name in messages.
        format: the format of its suffix.
        head: its first bytes; empty for an empty file.
        stream: all its bytes, decompressed.
        progress: updated by the reader.
        open_files: closes what the reader opens.
    """

    name: str
    format: CorpusFormat | None
    head: bytes
    stream: IO[bytes]
    progress: Progress
    open_files: ExitStack
    _path: Path = Path()
    _stored: IO[bytes] | None = None  # `stream`, or the compressed data

    def note_progress(self) -> None:
        """Set the progress to the current position in the file."""
        if self._stored is not None:
            self.progress.position = self._stored.tell()

    def on_disk(self) -> Path:
        """The path of a file with the same contents, if necessary a temporary one."""
        if self.stream is self._stored:
            return self._path.absolute()
        with reading(self.name):
            return _copy(_blocks(self.stream), self.open_files)


@contextmanager
def open_source(path: Location, progress: Progress) -> Iterator[Source]:
    """Open a path, a URL, or standard input for None; `progress` is updated while it is read.

    Raises:
        CorpusError: it cannot be opened.
        BadRowError: it is damaged at the beginning.
    """
    with ExitStack() as stack:
        name = "stdin" if path is None else text_of(shown_url(str(path)))
        with reading(name):
            named = file_of(path) if isinstance(path, str) else path
            if isinstance(path, str):
                with requested(path) as response:
                    path = _copy(response.iter_bytes(), stack)
            elif path is None:
                path = _copy(_blocks(standard_input()), stack)
            elif file_size(path) is None:  # a pipe
                path = _copy(_blocks(stack.enter_context(path.open("rb"))), stack)
            stored = stack.enter_context(path.open("rb"))
            is_packed = stored.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            stored.seek(0)
            stream: IO[bytes] = stored
            if is_packed:
                stream = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=stored)))
            head = stream.read(HEAD_BYTES)
            stream.seek(0)
        kind = None if named is None else format_by_name(named)
        try:
            yield Source(name, kind, head, stream, progress, stack, path, stored)
        finally:
            progress.end_file(os.fstat(stored.fileno()).st_size)


def _copy(blocks: Iterable[bytes], files: ExitStack) -> Path:
    """A temporary file with these bytes."""
    descriptor, name = mkstemp(prefix="semsearch-")
    files.callback(Path(name).unlink)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - an open file
        file.writelines(blocks)
    return Path(name)


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(stream.read, BLOCK_BYTES), b"")


def text_of(file_name: str) -> str:
    """A file name as valid Unicode, whatever bytes it contains."""
    return file_name.encode("utf-8", "backslashreplace").decode()


def file_size(path: Path) -> int | None:
    """The size of a file; None if it is not a regular file (pipes).

    Raises:
        CorpusError: the file does not exist.
    """
    with reading(str(path)):
        status = path.stat()
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn exceptions of the system, gzip and codecs into a CorpusError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise CorpusError(f"no such file: {name}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadRowError(name, f"damaged gzip data: {error}") from error
    except OSError as error:
        raise CorpusError(f"cannot read {name}: {error.strerror or error}") from error
    except UnicodeError as error:
        raise CorpusError(f"{name}: {error}") from error
    except ValueError as error:  # an invalid file name
        raise CorpusError(f"cannot read {name!r}: {error}") from error


def standard_input() -> IO[bytes]:
    """Standard input; CorpusError if the shell closed it (``<&-``)."""
    if sys.stdin is None:
        raise CorpusError("standard input is closed")
    return sys.stdin.buffer


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
                return text_of(str(location.resolve()))
    return ""


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
