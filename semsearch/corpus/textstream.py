"""Decodes bytes to text, line by line with a maximum length."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.encodings import ESCAPED_BYTE, likely_encoding, remedy
from semsearch.errors import CorpusError
from semsearch.limits import MAX_ROW_BYTES, size_shown

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

# UTF-32 first: its mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


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


#: The part of a file that its likely encoding is guessed from.
SAMPLE_CHARACTERS = 1 << 16


class TextStream:
    """The characters of one source.

    A byte that cannot be decoded becomes a surrogate (PEP 383), which Document rejects: only the
    row that contains it is a bad row.

    Args:
        source: the bytes.
        encoding: named by the user; None for UTF-8.
        newline: as in `open`.
    """

    def __init__(self, source: Source, encoding: str | None, newline: str | None) -> None:
        self.name = source.name
        #: The number of characters read so far.
        self.position = 0
        self._encoding = encoding_of(source.head, encoding)
        self._head = source.head
        self._remedy: str | None = None
        self._escaped = ""  # the first lines or blocks with undecodable bytes
        self._reader = io.TextIOWrapper(
            source.stream, self._encoding, errors="surrogateescape", newline=newline
        )

    def lines(self, longest: int = MAX_ROW_BYTES) -> Iterator[str]:
        """Its lines, with their newlines.

        Raises:
            CorpusError: a line is too long, or the bytes cannot be decoded.
        """
        number = 0
        try:
            while line := self._reader.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise CorpusError(
                        f"{self.name}:{number}: the line is longer than {size_shown(longest)}"
                    )
                self.position += len(line)
                self._look_at(line)
                yield line
        except UnicodeError as error:
            raise self._undecodable(error) from error

    def read(self, size: int) -> str:
        """The next `size` characters, or fewer at the end.

        Raises:
            CorpusError: the bytes cannot be decoded.
        """
        try:
            block = self._reader.read(size)
        except UnicodeError as error:
            raise self._undecodable(error) from error
        self.position += len(block)
        self._look_at(block)
        return block

    def not_decoded(self) -> str:
        """Explain the bytes that could not be decoded so far, and what to do."""
        if self._remedy is None:
            self._remedy = remedy(self._escaped, self._encoding)
        return self._remedy

    def _look_at(self, text: str) -> None:
        missing = SAMPLE_CHARACTERS - len(self._escaped)
        if missing > 0 and not text.isascii() and (escaped := ESCAPED_BYTE.search(text)):
            start = max(0, escaped.start() - missing // 2)
            self._escaped += text[start : start + missing]

    def _undecodable(self, error: UnicodeError) -> CorpusError:
        reason = error.reason if isinstance(error, UnicodeDecodeError) else error
        message = f"{self.name} cannot be read as {self._encoding}: {reason}"
        likely = likely_encoding(self._head.decode("ascii", "surrogateescape"), "ascii")
        if likely and likely != self._encoding:
            message += f"; it looks like {likely}: --encoding {likely}"
        return CorpusError(message)
