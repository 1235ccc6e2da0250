"""Reads numbered lines of published files: plain, gzipped or inside a ZIP archive."""

from __future__ import annotations

import codecs
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from semsearch.encodings import undecodable
from semsearch.errors import DatasetError
from semsearch.limits import MAX_ROW_BYTES, MAX_ROW_VALUES, size_shown

DataFile = Path | zipfile.Path

GZIP_MAGIC = b"\x1f\x8b"
#: Bytes read after a line that is not UTF-8, to guess the encoding.
SAMPLE_BYTES = 1 << 16


class Line(NamedTuple):
    """A line without its newline, and its location (``sts.csv:418``)."""

    place: str
    text: str


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """Convert errors of the system and of archives to a DatasetError that names the file."""
    try:
        yield
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, KeyError) as error:
        raise DatasetError(f"{file} is damaged: {error}") from error
    except OSError as error:
        raise DatasetError(f"{file}: {error.strerror or error}") from error


def numbered_lines(file: DataFile, *, fallback: str | None = None) -> Iterator[Line]:
    r"""The lines of a file in UTF-8, with or without a byte order mark, read lazily.

    Only ``\n`` and ``\r\n`` end a line: `str.splitlines` would also split at other characters,
    which published sentences contain.

    Args:
        file: the file; decompressed if it is gzipped or its name ends with ``.gz``.
        fallback: the encoding of lines that are not UTF-8, for old data sets.

    Raises:
        DatasetError: the file cannot be read, or a line is not UTF-8 or longer than MAX_ROW_BYTES.
    """
    with reading(file), file.open("rb") as stream:
        is_gzip = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC or file.name.endswith(".gz")
        stream.seek(0)
        unpacked = gzip.GzipFile(fileobj=stream) if is_gzip else stream
        number = 0
        while raw := unpacked.readline(MAX_ROW_BYTES + 1):
            number += 1
            place = f"{file}:{number}"
            if len(raw) > MAX_ROW_BYTES:
                raise DatasetError(f"{place}: the line is longer than {size_shown(MAX_ROW_BYTES)}")
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                if fallback is None:
                    near = _near(raw, error.start) + unpacked.read(SAMPLE_BYTES)
                    sample = near.decode(errors="surrogateescape")
                    reason = undecodable(sample, option=None)
                    raise DatasetError(f"{place}: {reason}") from None
                text = raw.decode(fallback)
            yield Line(place, text.removesuffix("\n").removesuffix("\r"))


def cells_of(line: Line, separator: str | None = None) -> list[str]:
    """The cells of a line, separated by a separator or by white space.

    Raises:
        DatasetError: there are more than MAX_ROW_VALUES.
    """
    cells = line.text.split(separator, MAX_ROW_VALUES)
    if len(cells) > MAX_ROW_VALUES:
        raise DatasetError(f"{line.place}: more than {MAX_ROW_VALUES:,} cells")
    return cells


def _near(raw: bytes, position: int) -> bytes:
    """The bytes around a position, before which all bytes are valid UTF-8."""
    start = max(0, position - SAMPLE_BYTES)
    while start < position and 0x80 <= raw[start] < 0xC0:  # in the middle of a character
        start += 1
    return raw[start : position + SAMPLE_BYTES]
