"""Reads plain text: a file as one document."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from semsearch.corpus.formats import without_gz
from semsearch.corpus.frontmatter import split_front_matter
from semsearch.corpus.recognition import binary_likeness, lines_remark
from semsearch.corpus.sources import identifier_of
from semsearch.corpus.table import Row, Table
from semsearch.corpus.textstream import TextStream, encoding_of
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import BadRowError, CorpusError, UndecodableError
from semsearch.limits import MAX_ROW_BYTES, size_shown

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

_COLUMNS = ("id", "title", "text")
#: Stands before fields of front matter that would be taken for the document's own.
_PREFIX = "front_matter."

#: How far a heading is looked for: a text may have millions of lines, and no heading.
HEADING_WITHIN_CHARACTERS = 1 << 20


def read_text(source: Source, encoding: str | None, *, doubted: bool = True) -> Table:
    """The table of a single text: one row, which is called what the file is called.

    Args:
        source: the text.
        encoding: as declared by the user.
        doubted: whether to remark that it seems to hold many texts.
    """
    identifier = identifier_of(source.name)
    head = source.head.decode(encoding_of(source.head, encoding), "replace")
    remark = lines_remark(head) if doubted else ""
    rows = iter((text_row(source, identifier, encoding),))
    return Table(source.name, _COLUMNS, rows, announced=False, remark=remark)


def text_row(source: Source, identifier: str, encoding: str | None) -> Row | BadRowError:
    """The row of a text: what the file is called, its title and, of Markdown, its front matter."""
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
    title = fields.pop("title", None)
    own["title"] = title if isinstance(title, str) and title else _heading(own["text"]) or path.stem
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
    """``Title`` of ``## Title ##``; nothing if it is no heading (``#hashtag``)."""
    hashes, _, title = line.replace("\t", " ").partition(" ")
    words, _, closing = title.rpartition(" ")
    if hashes.strip("#") or len(hashes) > 6:
        return ""
    return (title if closing.strip("#") else words).strip()
