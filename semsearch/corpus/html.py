"""Reads HTML pages: their paragraphs under their headings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.corpus.sections import Block, Parts, sections_of
from semsearch.corpus.textstream import TextStream
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import CorpusTooLargeError, UndecodableError
from semsearch.limits import MAX_PART_BYTES, size_shown
from semsearch.texts import one_line, quantity

if TYPE_CHECKING:
    from lxml import etree

    from semsearch.corpus.sources import Source

_DECLARED = re.compile(rb"<meta[^>]{1,200}charset=[\"' ]*([\w.:-]{1,40})", re.IGNORECASE)
_XML_DECLARED = re.compile(rb"<\?xml[^>]{1,200}encoding=[\"']([\w.:-]{1,40})")

_SKIPPED = {"head", "title", "script", "style", "template", "noscript", "svg", "nav", "iframe"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = _HEADINGS | {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl"),
    *("dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "li"),
    *("main", "ol", "option", "p", "pre", "section", "summary", "table", "tr", "ul"),
}
_CELLS = {"td", "th"}
_SPACES = re.compile(r"[ \t\r\n\f]+")
_CELL_END = " | "


def read_html(source: Source, encoding: str | None) -> Parts:
    """The sections of a page, each under a heading.

    Args:
        source: the page.
        encoding: named by the user; None for the one that the page declares, or UTF-8.

    Raises:
        CorpusError: it is too long, or cannot be decoded.
    """
    found = _DECLARED.search(source.head) or _XML_DECLARED.search(source.head)
    if encoding is None and found and _is_known(declared := found[1].decode()):
        # Browsers decode Latin-1 as windows-1252 (WHATWG's Encoding Standard).
        is_latin_1 = codecs.lookup(declared).name == "iso8859-1"
        encoding = "windows-1252" if is_latin_1 else declared
    stream = TextStream(source, encoding, newline=None)
    text = stream.read(MAX_PART_BYTES + 1)
    if len(text) > MAX_PART_BYTES:
        raise CorpusTooLargeError(f"longer than {size_shown(MAX_PART_BYTES)}")
    if ESCAPED_BYTE.search(text):
        what = f"text holds {first_escaped(text)}"
        raise UndecodableError(source.name, what, stream.not_decoded())
    tree = parse_html(text.encode("utf-8", "replace"))
    sections = list(sections_of(blocks_of(tree)))
    remark = quantity(len(sections), "section") if sections else ""
    return Parts(title_of(tree), iter(sections), remark)


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True


def parse_html(markup: bytes) -> etree._Element | None:
    """The tree of a page in UTF-8; None if it is blank."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    return etree.fromstring(markup, parser) if markup.strip() else None


def title_of(tree: etree._Element | None) -> str:
    """The title of a page, if it has one."""
    found = None if tree is None else tree.find(".//title")
    return "" if found is None else "".join(map(str, found.itertext()))


def blocks_of(tree: etree._Element | None) -> Iterator[Block]:
    """The text of a page in order, without scripts, styles and menus (``nav``).

    The cells of a table row are one block.
    """
    if tree is None:
        return
    from lxml import etree

    page = _Page()
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        skipped = element.tag in _SKIPPED
        if event == "end":
            if not skipped:
                yield from page.close(element.tag)
            page.add(element.tail)
        elif skipped:
            walk.skip_subtree()
        else:
            yield from page.open(element.tag)
            page.add(element.text)
    yield from page.block()


class _Page:
    """The text of the current block, as elements are opened and closed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._verbatim = self._cells = 0  # how many of these elements are open

    def add(self, text: str | None) -> None:
        """Append text."""
        if text:
            self._parts.append(text if self._verbatim else _SPACES.sub(" ", text))

    def open(self, tag: str) -> Iterator[Block]:
        """Begin an element; a block element ends the previous block, unless it is in a cell."""
        if tag == "br":
            self._parts.append("\n")
        elif tag in _BLOCKS:
            if self._cells:
                self._parts.append(" ")
            else:
                yield from self.block()
        self._verbatim += tag == "pre"
        self._cells += tag in _CELLS

    def close(self, tag: str) -> Iterator[Block]:
        """End an element."""
        self._cells -= tag in _CELLS
        if tag in _CELLS:
            self._parts.append(_CELL_END)
        elif tag in _BLOCKS:
            if self._cells:
                self._parts.append(" ")
            else:
                yield from self.block(is_heading=tag in _HEADINGS)
        self._verbatim -= tag == "pre"

    def block(self, *, is_heading: bool = False) -> Iterator[Block]:
        """End the current block; yield it unless it is empty."""
        text = "".join(self._parts)
        self._parts.clear()
        if not self._verbatim:
            text = "\n".join(map(one_line, text.split("\n")))
        text = text.strip().removesuffix(_CELL_END.strip()).rstrip()
        if text:
            yield Block(text, is_heading)
