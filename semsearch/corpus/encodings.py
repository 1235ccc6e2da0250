"""Decodes files: by their byte order mark or as declared; guesses encodings for messages."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

from semsearch.corpus.sources import Source, reading
from semsearch.corpus.table import MAX_ROW_CHARACTERS
from semsearch.errors import CorpusError, UndecodableError
from semsearch.records import ESCAPED_BYTE, first_escaped

#: After so many lines, the progress of reading is noted.
_LINES_PER_NOTE = 100

# UTF-32 first: its mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: Common encodings; among equally likely ones, the first is chosen.
_COMMON = (
    *("utf-8", "windows-1252", "windows-1250", "windows-1251", "windows-1253", "windows-1254"),
    *("windows-1255", "windows-1256", "windows-1257", "koi8-r", "iso8859-2", "shift_jis"),
    *("euc_jp", "gb18030", "big5", "euc_kr"),
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


def likely_encoding(text: str, encoding: str = "utf-8") -> str | None:
    """The likely encoding of a text with escaped bytes; None if there is no good guess.

    Args:
        text: a part of the text, with `ESCAPED_BYTE` for undecodable bytes.
        encoding: the encoding it was read as.
    """
    escaped = len(ESCAPED_BYTE.findall(text))
    if not escaped or encoding.startswith(("utf-16", "utf-32")):  # these have no single bytes
        return None
    data = text.encode(encoding, "surrogateescape")
    if _decoded(data, "utf-8") is not None:
        return "utf-8"
    if len(re.findall("[^\x00-\x7f]", text)) >= 2 * escaped:
        return None  # most of it decodes as declared: the text is damaged
    import charset_normalizer  # only needed for error messages

    matches = charset_normalizer.from_bytes(data, cp_isolation=list(_COMMON))
    if not (best := matches.best()):
        return None
    scores = best.chaos, best.coherence
    likely = {str(match) for match in matches if (match.chaos, match.coherence) == scores}
    return next((name for name in _COMMON if _decoded(data, name) in likely), None)


def remedy(text: str, encoding: str = "utf-8") -> str:
    """``not UTF-8; it looks like windows-1252 (--encoding windows-1252)``.

    The arguments are those of `likely_encoding`.
    """
    name = "UTF-8" if encoding in ("utf-8", "utf-8-sig") else encoding
    likely = likely_encoding(text, encoding)
    return f"not {name}; it looks like {likely} (--encoding {likely})" if likely else f"not {name}"


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeError:
        return None


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
        self._source = source
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
        source.open_files.callback(self._reader.detach)  # its stream may be standard input

    def lines(self, longest: int = MAX_ROW_CHARACTERS) -> Iterator[str]:
        """Its lines, with their newlines.

        Raises:
            CorpusError: a line is too long, or the bytes cannot be decoded or decompressed.
        """
        number = 0
        with self._decoding():
            while line := self._reader.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    reason = f"the line is longer than {longest:,} characters"
                    raise CorpusError(f"{self.name}:{number}: {reason}")
                if number % _LINES_PER_NOTE == 0:
                    self._source.note_progress()
                yield line

    def read(self, size: int) -> str:
        """The next `size` characters, or fewer at the end; raises the same errors."""
        with self._decoding():
            return self._reader.read(size)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        with reading(self.name):
            try:
                yield
            except UnicodeError as error:
                reason = f"cannot be read as {self._encoding}: {getattr(error, 'reason', error)}"
                raise CorpusError(f"{self.name} {reason}") from error
