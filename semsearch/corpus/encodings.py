"""Decodes files: by their byte order mark, as declared, or as UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator

from semsearch.corpus.sources import Source, reading
from semsearch.corpus.table import MAX_ROW_CHARACTERS
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import ESCAPED_BYTE, first_escaped

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")


def encoding_of(head: bytes, declared: str | None) -> str:
    """The encoding of a file: by its byte order mark, or else the declared one.

    Raises:
        CorpusError: Python does not know the declared encoding.
    """
    if declared is not None:
        try:
            head.decode(declared, "replace")
        except (LookupError, ValueError):
            raise CorpusError(f"unknown encoding: {declared!r}") from None
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    return declared or "utf-8"


def remedy(encoding: str) -> str:
    """What to do about bytes that cannot be decoded."""
    return f"not {encoding.upper()}; name the right one: --encoding windows-1252, for example"


class TextStream:
    """The characters of one source.

    A byte that cannot be decoded becomes a surrogate (PEP 383), which Document rejects: only the
    row that contains it is a bad row.

    Args:
        source: the bytes.
        encoding: named by the user; None for UTF-8.
        newline: as in `open`.

    Raises:
        BadRowError: the beginning of the file looks like another encoding.
    """

    def __init__(self, source: Source, encoding: str | None, newline: str | None) -> None:
        self.name = source.name
        self._source = source
        self._encoding = encoding_of(source.head, encoding)
        decoder = codecs.getincrementaldecoder(self._encoding)("surrogateescape")
        with reading(self.name):
            head = decoder.decode(source.head)  # not final: a character may be cut off
        # One damaged byte among others that can be decoded is a bad row.
        if 2 * len(ESCAPED_BYTE.findall(head)) > len(_BEYOND_ASCII.findall(head)):
            what = f"its text holds {first_escaped(head)}, which is {remedy(self._encoding)}"
            raise BadRowError(source.name, what)
        self._reader = io.TextIOWrapper(
            source.stream, self._encoding, errors="surrogateescape", newline=newline
        )
        source.open_files.callback(self._reader.detach)  # its stream may be standard input

    def lines(self, longest: int = MAX_ROW_CHARACTERS) -> Iterator[str]:
        """Its lines, with their newlines.

        Raises:
            CorpusError: a line is too long, or the bytes cannot be decoded or decompressed.
        """
        number = 0
        with reading(self.name):
            while line := self._reader.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    reason = f"the line is longer than {longest:,} characters"
                    raise CorpusError(f"{self.name}:{number}: {reason}")
                self._source.note_progress()
                yield line

    def read(self, size: int) -> str:
        """The first `size` characters, or all if there are fewer; raises the same errors."""
        with reading(self.name):
            self._reader.seek(0)
            return self._reader.read(size)
