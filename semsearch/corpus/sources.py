"""Opens files, URLs and standard input; decompresses gzip."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, BinaryIO

from semsearch.corpus.formats import CorpusFormat, format_by_name
from semsearch.corpus.limits import MAX_STORED_BYTES, size_shown
from semsearch.corpus.locations import Location, downloaded, file_of, shown_url
from semsearch.errors import BadFileError, CorpusError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: The part of a file that its format and encoding are detected from.
HEAD_BYTES = 64 << 10
BUFFER_BYTES = 128 << 10

_GZIP_MAGIC = b"\x1f\x8b"


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
