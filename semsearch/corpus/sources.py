"""Opens files, URLs and standard input; decompresses gzip."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO
from urllib.parse import unquote, urlsplit

from semsearch import __version__
from semsearch.corpus.formats import CorpusFormat, format_by_name
from semsearch.corpus.limits import (
    MAX_DOWNLOAD_BYTES,
    MAX_SILENCE_SECONDS,
    MAX_STORED_BYTES,
    size_shown,
)
from semsearch.errors import BadFileError, CorpusError, DownloadError, first_line

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from httpx2 import Response

#: The part of a file that its format and encoding are detected from.
HEAD_BYTES = 64 << 10
BUFFER_BYTES = 128 << 10

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

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._previous_files = 0
        self.position = 0

    @property
    def fraction(self) -> float | None:
        """From 0 to 1, or None if unknown."""
        if self._total is None:
            return None
        return min((self._previous_files + self.position) / max(self._total, 1), 1.0)

    def next_file(self) -> None:
        """Begin the next file, at position 0."""
        self._previous_files += self.position
        self.position = 0


class _Stream(io.RawIOBase):
    """A stream with access to its first bytes, whose failures are CorpusErrors.

    Closing it does not close the inner stream, which may be standard input.
    """

    def __init__(self, inner: IO[bytes] | io.BufferedIOBase, name: str, progress: Progress) -> None:
        self._inner = inner
        self._name = name
        self._progress = progress
        self._head = b""
        self._is_at_end = False

    def readable(self) -> bool:
        return True

    def head(self, least: int) -> bytes:
        """The first bytes, at least this many unless there are fewer, without consuming them."""
        while len(self._head) < least and (more := self._read(HEAD_BYTES - len(self._head))):
            self._head += more
        return self._head

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        data = self._head[: len(target)] or self._read(len(target))
        self._head = self._head[len(data) :]
        target[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        if self._is_at_end:  # a terminal would wait for another end
            return b""
        with reading(self._name):
            data: bytes | None = self._inner.read(size)
        if data is None:  # an empty non-blocking pipe: this is not its end
            raise CorpusError(f"cannot read {self._name}: it is a non-blocking pipe")
        self._is_at_end = not data
        self._progress.position += len(data)
        return data


@dataclass(frozen=True)
class Source:
    """One open file of a corpus, or standard input.

    Args:
        name: its name in messages.
        format: the format of its suffix.
        head: its first bytes; empty for an empty file.
        stream: all its bytes, decompressed.
        progress: updated by the reader; reading `stream` updates it as well.
        path: its path, if it is a regular file that is not compressed.
    """

    name: str
    format: CorpusFormat | None
    head: bytes
    stream: BinaryIO
    progress: Progress
    path: Path | None
    _open_files: ExitStack

    def on_disk(self) -> Path:
        """The path of a file with the same contents, if necessary a temporary one.

        Raises:
            CorpusError: it would be larger than MAX_STORED_BYTES, or cannot be written.
        """
        if self.path is not None:
            self.progress.position = self.path.stat().st_size
            return self.path.absolute()
        folder = self._open_files.enter_context(tempfile.TemporaryDirectory())
        copy = Path(folder, "document")
        with reading(self.name), copy.open("wb") as file:
            while block := self.stream.read(BUFFER_BYTES):
                file.write(block)
                if file.tell() > MAX_STORED_BYTES:
                    raise CorpusError(f"longer than {size_shown(MAX_STORED_BYTES)}")
        return copy

    def seekable(self) -> IO[bytes]:
        """That file, open while this source is."""
        return self._open_files.enter_context(self.on_disk().open("rb"))


@contextmanager
def open_source(
    path: Location, progress: Progress, head_bytes: int = HEAD_BYTES
) -> Iterator[Source]:
    """Open a path, a URL, or standard input for None.

    Args:
        path: where it is.
        progress: updated while it is read.
        head_bytes: how many bytes to wait for before the source is returned.

    Raises:
        CorpusError: it cannot be opened; reading from it raises the same.
    """
    named: PurePath | None = None
    plain: Path | None = None
    with ExitStack() as stack:
        file: IO[bytes]
        if path is None:
            name, file = "stdin", _standard_input()
        elif isinstance(path, str):
            name, file = shown_url(path), stack.enter_context(downloaded(path))
            named = file_of(path)
        else:
            name, named = text_of(str(path)), path
            with reading(name):
                file = stack.enter_context(path.open("rb"))
            plain = path if file_size(path) is not None else None
        stream = _Stream(file, name, progress)
        if stream.head(head_bytes).startswith(_GZIP_MAGIC):
            unpacked = gzip.GzipFile(fileobj=io.BufferedReader(stream, BUFFER_BYTES))
            stream, plain = _Stream(unpacked, name, Progress(None)), None
        format_of_name = None if named is None else format_by_name(named)
        head, buffered = stream.head(head_bytes), io.BufferedReader(stream, BUFFER_BYTES)
        yield Source(name, format_of_name, head, buffered, progress, plain, stack)
    progress.next_file()


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
    """Turn exceptions of the system and of gzip into a CorpusError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise CorpusError(f"no such file: {name}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFileError(name, f"damaged gzip data: {error}", name) from error
    except OSError as error:
        raise CorpusError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # an invalid file name
        raise CorpusError(f"cannot read {name!r}: {error}") from error


def _standard_input() -> IO[bytes]:
    # sys.stdin is None if the shell closed it (<&-).
    if sys.stdin is None:
        raise CorpusError("standard input is closed")
    # Its buffer would wait for more than has come; a program may replace it by one without `raw`.
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


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
        CorpusError: the server cannot be reached, refuses, or sends too much.
    """
    name = shown_url(url)
    with tempfile.TemporaryFile() as file:
        with requested(url) as response:
            for block in response.iter_bytes():
                file.write(block)
                if file.tell() > MAX_DOWNLOAD_BYTES:
                    limit = f"it is larger than {size_shown(MAX_DOWNLOAD_BYTES)}"
                    raise CorpusError(f"{name}: {limit}; download it, then index the file")
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
