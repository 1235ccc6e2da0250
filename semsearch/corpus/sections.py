"""What converters make of documents: blocks, and the parts that become hits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: How much of a heading is kept.
HEADING_MAX_CHARACTERS = 200


class Block(NamedTuple):
    """A paragraph, or a heading."""

    text: str
    is_heading: bool = False


class Section(NamedTuple):
    """A part of a document.

    Args:
        kind: ``page``, ``slide`` or ``section``.
        number: its place among these, from 1.
        text: what it says; empty for a blank one.
        heading: what it is called, if anything.
        fault: why it cannot be read.
    """

    kind: str
    number: int
    text: str
    heading: str = ""
    fault: str = ""


class Parts(NamedTuple):
    """A document as a converter reads it.

    Args:
        title: of the document, where it has one.
        sections: its parts, read as they are asked for.
        remark: what a person is told of it, such as ``12 pages``.
        if_blank: what to do about one without text.
    """

    title: str
    sections: Iterator[Section]
    remark: str = ""
    if_blank: str = ""


def sections_of(blocks: Iterable[Block], first: int = 1) -> Iterator[Section]:
    """Blocks in sections, each beginning with a heading; headings in a row belong to one.

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
