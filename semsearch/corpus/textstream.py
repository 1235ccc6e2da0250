"""Characters out of bytes: which encoding, and lines that cannot grow without bound."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.corpus.table import MAX_ROW_BYTES, size_shown
from semsearch.errors import CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

__all__ = ["TextStream", "encoding_of"]

# The marks of UTF-32 first: that of UTF-16 is the beginning of one of them.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(head: bytes, declared: str | None) -> str:
    """The encoding of a file that begins like this: by its byte order mark, else as declared.

    Raises:
        CorpusError: when the declared encoding is none that Python knows.
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


class TextStream:
    """The characters of one source.

    A byte that is not of the encoding becomes a surrogate (PEP 383), which a Document refuses:
    so the row that holds it is a bad row, and only that.

    Args:
        source: where the bytes come from.
        encoding: as declared by the user; None for UTF-8.
        newline: what ends a line, as `open` has it.
    """

    def __init__(self, source: Source, encoding: str | None, newline: str | None) -> None:
        self.name = source.name
        #: How many characters have been handed out.
        self.position = 0
        self._encoding = encoding_of(source.head, encoding)
        self._reader = io.TextIOWrapper(
            source.stream, self._encoding, errors="surrogateescape", newline=newline
        )

    def lines(self) -> Iterator[str]:
        """Its lines, each with its end.

        Raises:
            CorpusError: at a line longer than MAX_ROW_BYTES, or bytes that cannot be decoded.
        """
        number = 0
        try:
            while line := self._reader.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(line) > MAX_ROW_BYTES:
                    raise CorpusError(
                        f"{self.name}:{number}: the line is longer than {size_shown(MAX_ROW_BYTES)}"
                    )
                self.position += len(line)
                yield line
        except UnicodeError as error:
            raise self._undecodable(error) from error

    def read(self, size: int) -> str:
        """The next `size` characters, or what is left.

        Raises:
            CorpusError: at bytes that cannot be decoded.
        """
        try:
            block = self._reader.read(size)
        except UnicodeError as error:
            raise self._undecodable(error) from error
        self.position += len(block)
        return block

    def _undecodable(self, error: UnicodeError) -> CorpusError:
        reason = error.reason if isinstance(error, UnicodeDecodeError) else error
        return CorpusError(f"{self.name} cannot be read as {self._encoding}: {reason}")
