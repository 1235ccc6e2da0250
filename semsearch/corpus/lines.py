"""Reads lines: each a text of a corpus, or no document at all, such as a query."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from semsearch.corpus.sources import Progress, open_source
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import SAMPLE_CHARACTERS, TextStream
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import CorpusError, EmptyCorpusError


def read_lines(text: TextStream) -> Table:
    """The table of a file with one text a line; blank lines are left out.

    Raises:
        CorpusError: it has none.
    """
    rows = (
        Row(f"{text.name}:{number}", {"text": line.rstrip("\r\n")})
        for number, line in enumerate(text.lines(), start=1)
        if line.strip()
    )
    first = next(rows, None)
    if first is None:
        raise EmptyCorpusError(f"{text.name} has no lines with text")
    return Table(
        text.name,
        ("text",),
        chain((first,), rows),
        announced=False,
        remark="one text a line",
        not_decoded=text.not_decoded,
    )


class TextLine(NamedTuple):
    """A line with its end, numbered from 1."""

    number: int
    text: str


def text_lines(path: Path | None, encoding: str | None, longest: int) -> Iterator[TextLine]:
    """The lines of a file, or of standard input for None; gzip and byte order marks are known.

    Args:
        path: the file.
        encoding: as declared by the user; None for UTF-8.
        longest: how many characters a line may have.

    Raises:
        CorpusError: the file cannot be read, or a line is too long or not of the encoding.
    """
    with open_source(path, Progress(None)) as source:
        stream = TextStream(source, encoding, newline=None)
        for number, line in enumerate(stream.lines(longest), start=1):
            if ESCAPED_BYTE.search(line):
                stream.read(SAMPLE_CHARACTERS)  # to judge by
                reason = f"{first_escaped(line)} is {stream.not_decoded()}"
                raise CorpusError(f"{source.name}:{number}: {reason}")
            yield TextLine(number, line)
