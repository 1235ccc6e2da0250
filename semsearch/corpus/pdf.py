"""Reads PDF, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semsearch.corpus.sections import Parts, Section
from semsearch.errors import CorpusError
from semsearch.limits import MAX_UNPACKED_BYTES
from semsearch.texts import quantity

if TYPE_CHECKING:
    import pypdfium2

    from semsearch.corpus.sources import Source

_NEEDS_A_PASSWORD = "Incorrect password"  # noqa: S105 - a message of PDFium
# PDFium's marks for a word hyphenated at the end of a line.
_BROKEN_WORD = re.compile("[\x02\ufffe]\n?")


def read_pdf(source: Source) -> Parts:
    """The pages of a PDF document.

    Raises:
        CorpusError: it is encrypted.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(source.seekable(MAX_UNPACKED_BYTES))
    except pypdfium2.PdfiumError as error:
        if _NEEDS_A_PASSWORD in str(error):
            raise CorpusError("is encrypted: save it without a password first") from None
        raise
    pages = quantity(len(document), "page")
    title = document.get_metadata_value("Title")
    blank = "if it is a scan, recognise its text first (for example with ocrmypdf)"
    return Parts(title, _pages(document), pages, blank)


def _pages(document: pypdfium2.PdfDocument) -> Iterator[Section]:
    import pypdfium2

    try:
        for number in range(1, len(document) + 1):
            try:
                text = _text(document, number - 1)
            except pypdfium2.PdfiumError as error:
                yield Section("page", number, "", fault=f"cannot be read: {error}")
            else:
                yield Section("page", number, text)
    finally:
        document.close()


def _text(document: pypdfium2.PdfDocument, index: int) -> str:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            text = str(text_page.get_text_bounded(errors="replace"))
        finally:
            text_page.close()
    finally:
        page.close()
    return _BROKEN_WORD.sub("", text.replace("\r\n", "\n"))
