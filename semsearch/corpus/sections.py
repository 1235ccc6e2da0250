"""The output of converters: blocks of text, and the parts that become documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Longer headings are truncated.
HEADING_MAX_CHARACTERS = 200


class Block(NamedTuple):
    """A paragraph, or a heading."""

    text: str
    is_heading: bool = False


class Section(NamedTuple):
    """A part of a document.

    Args:
        kind: ``page``, ``slide`` or ``section``.
        number: counted from 1.
        text: its text; may be empty.
        heading: its heading, if any.
        fault: why it cannot be read, if so.
    """

    kind: str
    number: int
    text: str
    heading: str = ""
    fault: str = ""


class Contents(NamedTuple):
    """A document as read by a converter.

    Args:
        title: of the document, if it has one.
        sections: its parts.
        remark: shown to users, such as ``12 pages``.
        if_blank: what to do if parts of the document have no text.
    """

    title: str
    sections: Iterable[Section]
    remark: str = ""
    if_blank: str = ""


def sections_of(blocks: Iterable[Block], first: int = 1) -> Iterator[Section]:
    """Group blocks into sections, each under a heading; consecutive headings share a section.

    Args:
        blocks: the document.
        first: the number of its first section.
    """
    number, heading, has_body = first, "", False
    lines: list[str] = []
    for block in blocks:
        if block.is_heading:
            if has_body:
                yield Section("section", number, "\n".join(lines), heading)
                number, lines, has_body = number + 1, [], False
            heading = " ".join(block.text.split())[:HEADING_MAX_CHARACTERS]
        has_body = has_body or not block.is_heading
        lines.append(block.text)
    if lines:
        yield Section("section", number, "\n".join(lines), heading)
