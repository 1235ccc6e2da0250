"""Reads plain text: a file as one document, or each line as one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from semsearch.corpus.formats import without_gz
from semsearch.corpus.frontmatter import split_front_matter
from semsearch.corpus.recognition import binary_likeness, lines_remark
from semsearch.corpus.sources import Progress, Source, identifier_of, open_source
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import SAMPLE_CHARACTERS, TextStream, encoding_of
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import BadRowError, CorpusError, UndecodableError
from semsearch.limits import MAX_ROW_BYTES, size_shown

_COLUMNS = ("id", "title", "text")
#: Prefix of front matter fields whose names clash with a document's own fields.
_PREFIX = "front_matter."

#: Where the search for a heading ends: a text may have millions of lines and no heading.
HEADING_WITHIN_CHARACTERS = 1 << 20


def read_text(source: Source, encoding: str | None, *, doubted: bool = True) -> Table:
    """The table of a single text: one row, whose id is the name of the file.

    Args:
        source: the text.
        encoding: named by the user.
        doubted: whether to remark that it seems to hold many texts.
    """
    identifier = identifier_of(source.name)
    head = source.head.decode(encoding_of(source.head, encoding), "replace")
    remark = lines_remark(head) if doubted else ""
    rows = iter((text_row(source, identifier, encoding),))
    return Table(source.name, _COLUMNS, rows, announced=False, remark=remark)


def text_row(source: Source, identifier: str, encoding: str | None) -> Row | BadRowError:
    """The row of a text: its title, its text and, for Markdown, its front matter."""
    found = encoding_of(source.head, encoding)
    if likeness := binary_likeness(source.head, found):
        return BadRowError(source.name, str(likeness), document_id=identifier)
    stream = TextStream(source, encoding, newline=None)
    text = stream.read(MAX_ROW_BYTES + 1)
    if len(text) > MAX_ROW_BYTES:
        reason = f"longer than {size_shown(MAX_ROW_BYTES)}"
        return BadRowError(source.name, reason, document_id=identifier)
    if ESCAPED_BYTE.search(text):
        what = f"text holds {first_escaped(text)}"
        return UndecodableError(source.name, what, stream.not_decoded(), identifier)
    path = without_gz(PurePath(source.name))
    own: dict[str, Any] = {"id": identifier, "title": path.stem, "text": text}
    if path.suffix.lower() != ".md":
        return Row(source.name, own)
    try:
        fields, own["text"] = split_front_matter(text)
    except CorpusError as error:
        return BadRowError(source.name, str(error), document_id=identifier)
    title = fields.get("title")
    if isinstance(title, (str, int, float, date)) and not isinstance(title, bool):
        title = str(fields.pop("title"))
    else:
        title = ""
    own["title"] = title or _heading(own["text"]) or path.stem
    others = {f"{_PREFIX}{name}" if name in own else name: fields[name] for name in fields}
    return Row(source.name, {**own, **others})


def _heading(markdown: str) -> str | None:
    """The first heading of a Markdown text: ``# This`` or a line underlined with ``===``."""
    fence = previous = ""
    for line in map(str.strip, markdown[:HEADING_WITHIN_CHARACTERS].split("\n")):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif previous and line and not line.strip("="):
            return previous
        elif line.startswith("#") and (title := _after_hashes(line)):
            return title
        previous = line
    return None


def _after_hashes(line: str) -> str:
    """``Title`` from ``## Title ##``; empty if it is no heading (``#hashtag``)."""
    hashes, _, title = line.replace("\t", " ").partition(" ")
    words, _, closing = title.rpartition(" ")
    if hashes.strip("#") or len(hashes) > 6:
        return ""
    return (title if closing.strip("#") else words).strip()


def read_lines(text: TextStream) -> Table:
    """The table of a file with one text per line; blank lines are skipped.

    Raises:
        CorpusError: all lines are blank.
    """
    rows = (
        Row(f"{text.name}:{number}", {"text": line.rstrip("\r\n")})
        for number, line in enumerate(text.lines(), start=1)
        if line.strip()
    )
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{text.name} has no lines with text")
    return Table(
        text.name,
        ("text",),
        chain((first,), rows),
        announced=False,
        remark="one text per line",
        not_decoded=text.not_decoded,
    )


class TextLine(NamedTuple):
    """A line with its end, numbered from 1."""

    number: int
    text: str


def text_lines(path: Path | None, encoding: str | None, longest: int) -> Iterator[TextLine]:
    """The lines of a file, or of standard input for None; gzip and byte order marks are handled.

    Each line is yielded as soon as it has come.

    Args:
        path: the file.
        encoding: named by the user; None for UTF-8.
        longest: the maximum number of characters in a line.

    Raises:
        CorpusError: the file cannot be read, or a line is too long or cannot be decoded.
    """
    with open_source(path, Progress(None), head_bytes=1) as source:
        stream = TextStream(source, encoding, newline=None)
        for number, line in enumerate(stream.lines(longest), start=1):
            if ESCAPED_BYTE.search(line):
                stream.read(SAMPLE_CHARACTERS)  # more text to guess the encoding from
                reason = f"{first_escaped(line)} is {stream.not_decoded()}"
                raise CorpusError(f"{source.name}:{number}: {reason}")
            yield TextLine(number, line)
