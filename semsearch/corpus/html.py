"""Reads HTML pages: their paragraphs under their headings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.corpus.encodings import encoding_of, remedy
from semsearch.corpus.table import Contents, Section
from semsearch.corpus.texts import one_line
from semsearch.errors import CorpusError, quantity
from semsearch.records import ESCAPED_BYTE, first_escaped

if TYPE_CHECKING:
    from lxml import etree

#: The encoding that HTML or XHTML declares near its beginning.
_DECLARED = re.compile(
    rb"<meta[^>]{1,200}charset=[\"' ]*([\w.:-]{1,40})"
    rb"|\A\s*<\?xml[^>]{1,200}encoding=[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_DECLARED_WITHIN = 64 << 10
#: How browsers decode some declared encodings (WHATWG's Encoding Standard), by Python's names.
_AS_BROWSERS = {
    **dict.fromkeys(("ascii", "iso8859-1"), "windows-1252"),
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "utf-8"),
    "gb2312": "gb18030",
}

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
#: Marks in the text, which XML and HTML cannot contain.
_BLOCK, _HEADING, _VERBATIM = "\x00", "\x01", "\x02"


def read_html(path: Path, encoding: str | None) -> Contents:
    """The sections of a page, each under a heading.

    Its encoding is the one that is named, or that it declares, or UTF-8.

    Raises:
        CorpusError: it cannot be decoded, or its elements are nested too deeply.
    """
    page = path.read_bytes()
    if encoding is None and (found := _DECLARED.search(page[:_DECLARED_WITHIN])):
        with suppress(LookupError):
            name = codecs.lookup((found[1] or found[2]).decode()).name
            encoding = _AS_BROWSERS.get(name, name)
    encoding = encoding_of(page, encoding)
    markup = page.decode(encoding, "surrogateescape")
    if ESCAPED_BYTE.search(markup):
        raise CorpusError(f"{first_escaped(markup)} is {remedy(encoding)}")
    return html_contents(parse_html(markup))


def html_contents(tree: etree._Element) -> Contents:
    """The title and the sections of a page."""
    sections = list(_sections(tree))
    title = str(tree.xpath("string(.//title)"))
    return Contents(title, sections, quantity(len(sections), "section"))


def parse_html(markup: str) -> etree._Element:
    """The tree of a page.

    Raises:
        CorpusError: its elements are nested too deeply.
    """
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True
    )
    markup = markup if markup.strip() else "<p>"  # a blank page has no tree
    tree = etree.fromstring(markup.encode("utf-8", "replace"), parser)
    # At its limits, libxml2 stops and returns the tree of what it has read.
    if parser.error_log.filter_from_level(etree.ErrorLevels.FATAL):
        raise CorpusError("its elements are nested too deeply")
    return tree


def _sections(tree: etree._Element) -> Iterator[Section]:
    """The text of a page, divided at its headings; consecutive headings share a section."""
    number, heading, has_body = 1, "", False
    lines: list[str] = []
    for text, is_heading in _blocks(tree):
        if is_heading:
            if has_body:
                yield Section("section", number, "\n".join(lines), heading)
                number, lines, has_body = number + 1, [], False
            heading = " ".join(text.split())
        has_body = has_body or not is_heading
        lines.append(text)
    if lines:
        yield Section("section", number, "\n".join(lines), heading)


def _blocks(tree: etree._Element) -> Iterator[tuple[str, bool]]:
    """The paragraphs and headings of a page, and whether each is a heading.

    Scripts, styles and menus (``nav``) are left out; the cells of a table row are one block.
    """
    for text in "".join(_marked_text(tree)).split(_BLOCK):
        is_heading, is_verbatim = _HEADING in text, _VERBATIM in text
        text = text.replace(_HEADING, "").replace(_VERBATIM, "")
        if not is_verbatim:
            text = "\n".join(map(one_line, text.split("\n")))
        text = text.strip().removesuffix(_CELL_END.strip()).rstrip()
        if text:
            yield text, is_heading


def _marked_text(tree: etree._Element) -> Iterator[str]:
    """The text of a page with marks where blocks begin and end."""
    from lxml import etree

    verbatim = cells = 0  # how many of these elements are open
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        is_block = tag in _BLOCKS
        if event == "start" and tag in _SKIPPED:
            walk.skip_subtree()
            continue
        if event == "start":
            if is_block:  # inside a cell, it ends nothing
                yield " " if cells else _BLOCK + _HEADING * (tag in _HEADINGS)
            verbatim += tag == "pre"
            cells += tag in _CELLS
            yield "\n" * (tag == "br") + _VERBATIM * (tag == "pre")
        elif tag not in _SKIPPED:
            verbatim -= tag == "pre"
            cells -= tag in _CELLS
            yield _CELL_END if tag in _CELLS else ""
            if is_block:
                yield " " if cells else _BLOCK
        text = element.text if event == "start" else element.tail
        if text:
            yield text if verbatim else _SPACES.sub(" ", text)
