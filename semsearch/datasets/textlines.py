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

__all__ = ["DataFile", "Line", "numbered_lines", "reading"]

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
        DatasetError: the file cannot be read, or a line is not UTF-8.
    """
    with reading(file), file.open("rb") as stream:
        is_packed = file.name.endswith(".gz")
        unpacked = gzip.GzipFile(fileobj=stream) if is_packed else stream
        for number, raw in enumerate(unpacked, 1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            place = f"{file}:{number}"
            try:
                text = raw.decode()
            except UnicodeDecodeError:
                if fallback is None:
                    sample = (raw + unpacked.read(SAMPLE_BYTES)).decode(errors="surrogateescape")
                    reason = undecodable(sample, option=None)
                    raise DatasetError(f"{place}: {reason}") from None
                text = raw.decode(fallback)
            yield Line(place, text.removesuffix("\n").removesuffix("\r"))
