"""Files of word vectors: plain, compressed, or in a zip; and their text formats.

GloVe's format: a word and its numbers per line, separated by single spaces. Word2vec's and
fastText's: the same after a header with two integers, the numbers of words and dimensions.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy

from semsearch.encoders.cache import file_sha256
from semsearch.errors import EncoderError, ModelNotFoundError, first_line
from semsearch.protocols import Matrix


class VectorFile(NamedTuple):
    """A file of word vectors, or a member of a zip."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """Its name in specs and messages."""
        return str(self.path / self.member if self.member else self.path)

    def sha256(self) -> str:
        """The SHA-256 of its stored content.

        Raises:
            EncoderError: it cannot be read.
        """
        with _reading(self.name):
            digest = file_sha256(self.path)
        if self.member is None:
            return digest
        return hashlib.sha256(f"{digest} {self.member}".encode()).hexdigest()

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """Its unpacked lines; lines longer than `max_bytes` are split into pieces.

        Raises:
            EncoderError: it cannot be read.
        """
        with _reading(self.name), self._opened() as stream:
            while line := stream.readline(max_bytes):
                yield line

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes] | gzip.GzipFile]:
        if self.member is not None:
            with ZipFile(self.path) as archive, archive.open(self.member) as stream:
                yield stream
        elif self.path.suffix == ".gz":
            with gzip.open(self.path) as unpacked:
                yield unpacked
        else:
            with self.path.open("rb") as stream:
                yield stream


def find_vector_file(name: str) -> VectorFile:
    """Find a file by its path, or by the path of a zip followed by the name of a member.

    Raises:
        ModelNotFoundError: there is no such file.
        EncoderError: no member is named, and the zip does not contain exactly one ``.txt``.
    """
    if not name:
        raise ModelNotFoundError("glove: has no path; name the file of word vectors: glove:PATH")
    with _reading(name[:100]):
        path = Path(name).expanduser().resolve()
        if path.is_file() and path.suffix != ".zip":
            return VectorFile(path)
        for zipped in (path, *path.parents):
            if zipped.suffix == ".zip" and zipped.is_file():
                return VectorFile(zipped, _member(zipped, path.relative_to(zipped).as_posix()))
    advice = "; the weighting after an @ must be mean or sif" if "@" in name else ""
    raise ModelNotFoundError(f"no word vectors {name[:1000]!r}: no such file{advice}")


def _member(zipped: Path, name: str) -> str:
    """The member of a zip with this name; with the name ``.``, its only text file."""
    with ZipFile(zipped) as archive:
        members = archive.namelist()
    if name in members:
        return name
    texts = [member for member in members if member.endswith(".txt")]
    if name == "." and len(texts) == 1:
        return texts[0]
    wanted = f"no {name}" if name != "." else f"{len(texts)} .txt files"
    raise ModelNotFoundError(
        f"{zipped} has {wanted}; name a member, as in glove:{zipped}/MEMBER "
        f"({', '.join(members[:MEMBERS_SHOWN]) or 'it is empty'})"
    )


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Convert errors of reading a file into an EncoderError."""
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise EncoderError(f"{name} is damaged: {error}") from None
    except (OSError, RuntimeError, ValueError) as error:
        # no such home, an encrypted member, an unknown compression, a NUL in the path
        raise EncoderError(f"{name!r} cannot be read: {first_line(error)}") from None


MEMBERS_SHOWN = 10
BLOCK_WORDS = 1024
LINE_MAX_BYTES = 1_000_000
MAX_DIMENSION = 65_536

EXPECTED = (
    "expected a text file with a word and its numbers a line, as GloVe publishes them or word2vec "
    "writes them (not its binary format)"
)


class Block(NamedTuple):
    """A block of lines: words in UTF-8, and their vectors, shape (len(words), dimension)."""

    words: list[bytes]
    vectors: Matrix


def read_blocks(lines: Iterable[bytes], name: str) -> Iterator[Block]:
    """All words with their vectors, in the order of the file, in blocks.

    The first line, or the header, determines the dimension. Numbers are taken from the end of a
    line, because some words of glove.840B contain spaces.

    Args:
        lines: the lines of the file, at most `LINE_MAX_BYTES` long.
        name: the name of the file, for messages.

    Raises:
        EncoderError: the file has another format, or a malformed line.
    """
    numbered = _numbered(lines, name)
    first = next(numbered, None)
    if first is None:
        raise EncoderError(f"{name} is empty; {EXPECTED}")
    promised, dimension = _header(first[1])
    if promised is None:
        dimension = first[1].count(b" ")
        numbered = chain([first], numbered)
    if not 2 <= dimension <= MAX_DIMENSION:
        raise EncoderError(f"{name}:1: not word vectors; {EXPECTED}")
    words = 0
    for block in _blocks(numbered, dimension, name):
        words += len(block.words)
        yield block
    if promised is not None and words != promised:
        raise EncoderError(
            f"{name} is incomplete: its header announces {promised:,} words, but it has {words:,}"
        )
    if not words:
        raise EncoderError(f"{name} contains no words; {EXPECTED}")


def _blocks(numbered: Iterator[tuple[int, bytes]], dimension: int, name: str) -> Iterator[Block]:
    words: list[bytes] = []
    vectors = numpy.empty((BLOCK_WORDS, dimension), numpy.float32)
    for number, line in numbered:
        word, *numbers = line.rsplit(b" ", dimension)
        try:
            if not word or len(numbers) != dimension:
                raise ValueError
            with numpy.errstate(over="ignore"):  # infinite numbers are refused below
                vectors[len(words)] = [float(text) for text in numbers]
        except ValueError:
            what = f"not a word and {dimension} numbers"
            if number <= 2:
                what = f"{what}; {EXPECTED}"
            raise EncoderError(f"{name}:{number}: {what}") from None
        if not numpy.isfinite(vectors[len(words)]).all():
            raise EncoderError(f"{name}:{number}: a number is infinite or NaN")
        words.append(word)
        if len(words) == BLOCK_WORDS:
            yield Block(words, vectors)
            words = []
    if words:
        yield Block(words, vectors[: len(words)])


def _numbered(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if len(line) == LINE_MAX_BYTES:
            limit = f"{LINE_MAX_BYTES:,} bytes"
            raise EncoderError(f"{name}:{number}: a line longer than {limit}; {EXPECTED}")
        yield number, line.rstrip(b" \r\n")  # word2vec writes a space at the end of a line


def _header(line: bytes) -> tuple[int | None, int]:
    fields = line.split(b" ")
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
        return int(fields[0][:20]), int(fields[1][:20])
    return None, 0
