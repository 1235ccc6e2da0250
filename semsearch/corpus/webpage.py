"""Reads HTML pages."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from semsearch.corpus.markup import blocks_of, parse_html, title_of
from semsearch.corpus.sections import Parts, sections_of
from semsearch.corpus.textstream import TextStream
from semsearch.encodings import ESCAPED_BYTE, first_escaped
from semsearch.errors import CorpusTooLargeError, UndecodableError
from semsearch.limits import MAX_PART_BYTES, size_shown
from semsearch.texts import quantity

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

_DECLARED = re.compile(rb"<meta[^>]{1,200}charset=[\"' ]*([\w.:-]{1,40})", re.IGNORECASE)
_XML_DECLARED = re.compile(rb"<\?xml[^>]{1,200}encoding=[\"']([\w.:-]{1,40})")


def read_html(source: Source, encoding: str | None) -> Parts:
    """The sections of a page, each under a heading.

    Args:
        source: the page.
        encoding: as declared by the user; None for what the page declares, or UTF-8.

    Raises:
        CorpusError: it is too long, or not of that encoding.
    """
    found = _DECLARED.search(source.head) or _XML_DECLARED.search(source.head)
    if encoding is None and found and _is_known(declared := found[1].decode()):
        # What browsers understand by Latin-1 (WHATWG's Encoding Standard).
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
