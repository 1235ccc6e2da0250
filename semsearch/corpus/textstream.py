"""Decodes bytes to text, line by line with a maximum length."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.corpus.encodings import encoding_of
from semsearch.corpus.limits import MAX_ROW_BYTES, size_shown
from semsearch.errors import CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source


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
        return block

    def _undecodable(self, error: UnicodeError) -> CorpusError:
        reason = error.reason if isinstance(error, UnicodeDecodeError) else error
        return CorpusError(f"{self.name} cannot be read as {self._encoding}: {reason}")
