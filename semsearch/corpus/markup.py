"""Paragraphs and headings out of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.corpus.sections import Block
from semsearch.texts import one_line

if TYPE_CHECKING:
    from lxml import etree

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


def parse_html(markup: bytes) -> etree._Element | None:
    """The tree of a page in UTF-8; None where there is nothing."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    return etree.fromstring(markup, parser) if markup.strip() else None


def title_of(tree: etree._Element | None) -> str:
    """The title of a page, if it has one."""
    found = None if tree is None else tree.find(".//title")
    return "" if found is None else "".join(map(str, found.itertext()))


def blocks_of(tree: etree._Element | None) -> Iterator[Block]:
    """What a page says, in order: without scripts, styles and menus (``nav``).

    The cells of a table's row are one block.
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
    """The text of the present block, as elements are opened and closed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._verbatim = self._cells = 0  # how many of these elements are open

    def add(self, text: str | None) -> None:
        """More of it."""
        if text:
            self._parts.append(text if self._verbatim else _SPACES.sub(" ", text))

    def open(self, tag: str) -> Iterator[Block]:
        """Begin an element; a block ends the one before, unless it is in a cell."""
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
        """The present block, if it holds anything; then the next one begins."""
        text = "".join(self._parts)
        self._parts.clear()
        if not self._verbatim:
            text = "\n".join(map(one_line, text.split("\n")))
        text = text.strip().removesuffix(_CELL_END.strip()).rstrip()
        if text:
            yield Block(text, is_heading)
