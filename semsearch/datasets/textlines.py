"""Lines of a published file: plain, gzipped or inside a zip archive, numbered for messages."""

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

#: How much is read behind a line that is not UTF-8, to guess the encoding.
SAMPLE_BYTES = 1 << 16


class Line(NamedTuple):
    """A line without its end, and where it stands (``sts.csv:418``)."""

    place: str
    text: str


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """Say what the system and the archives' readers complain of as an error of ours.

    Raises:
        DatasetError: the file cannot be read, or is damaged.
    """
    try:
        yield
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, KeyError) as error:
        raise DatasetError(f"{file} is damaged: {error}") from error
    except OSError as error:
        raise DatasetError(f"{file}: {error.strerror or error}") from error


def numbered_lines(file: DataFile, *, fallback: str | None = None) -> Iterator[Line]:
    r"""The lines of a file in UTF-8, with or without a byte order mark, one at a time.

    Only ``\n`` and ``\r\n`` end a line: the published sentences hold other characters that
    `str.splitlines` would break them at.

    Args:
        file: what to read; a name that ends in ``.gz`` is unpacked on the way.
        fallback: the encoding of lines that are not UTF-8, for sets that are older than it.

    Raises:
        DatasetError: the file cannot be read, or a line is not UTF-8 or longer than MAX_ROW_BYTES.
    """
    with reading(file), file.open("rb") as stream:
        is_packed = file.name.endswith(".gz")
        unpacked = gzip.GzipFile(fileobj=stream) if is_packed else stream
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
    """What stands between the separators of a line, or between its white space.

    Raises:
        DatasetError: these are more than MAX_ROW_VALUES.
    """
    cells = line.text.split(separator, MAX_ROW_VALUES)
    if len(cells) > MAX_ROW_VALUES:
        raise DatasetError(f"{line.place}: more than {MAX_ROW_VALUES:,} cells")
    return cells


def _near(raw: bytes, place: int) -> bytes:
    """What stands around a place; before it, all is UTF-8."""
    start = max(0, place - SAMPLE_BYTES)
    while start < place and 0x80 <= raw[start] < 0xC0:  # in the middle of a character
        start += 1
    return raw[start : place + SAMPLE_BYTES]
