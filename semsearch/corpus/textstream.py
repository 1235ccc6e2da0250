"""Decodes bytes to text, line by line with a maximum length."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semsearch.corpus.encodings import encoding_of, likely_encoding, remedy
from semsearch.corpus.limits import MAX_ROW_BYTES, size_shown
from semsearch.errors import CorpusError, UndecodableError
from semsearch.texts import first_escaped

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

    Raises:
        UndecodableError: the beginning of the file looks like another encoding.
    """

    def __init__(self, source: Source, encoding: str | None, newline: str | None) -> None:
        self.name = source.name
        self._encoding = encoding_of(source.head, encoding)
        decoder = codecs.getincrementaldecoder(self._encoding)("surrogateescape")
        with self._decoding():
            head = decoder.decode(source.head)  # not final: a character may be cut off
        if likely_encoding(head, self._encoding):
            advice = remedy(head, self._encoding)
            raise UndecodableError(source.name, f"its text holds {first_escaped(head)}", advice)
        self._reader = io.TextIOWrapper(
            source.stream, self._encoding, errors="surrogateescape", newline=newline
        )

    def lines(self, longest: int = MAX_ROW_BYTES) -> Iterator[str]:
        """Its lines, with their newlines.

        Raises:
            CorpusError: a line is too long, or the bytes cannot be decoded.
        """
        number = 0
        with self._decoding():
            while line := self._reader.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise CorpusError(
                        f"{self.name}:{number}: the line is longer than {size_shown(longest)}"
                    )
                yield line

    def read(self, size: int) -> str:
        """The next `size` characters, or fewer at the end.

        Raises:
            CorpusError: the bytes cannot be decoded.
        """
        with self._decoding():
            return self._reader.read(size)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError as error:
            reason = getattr(error, "reason", error)
            raise CorpusError(
                f"{self.name} cannot be read as {self._encoding}: {reason}"
            ) from error
