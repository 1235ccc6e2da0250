"""Reads PDF, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.corpus.table import Contents, Section
from semsearch.errors import CorpusError, quantity

if TYPE_CHECKING:
    import pypdfium2

_NEEDS_A_PASSWORD = "Incorrect password"  # noqa: S105 - a message of PDFium
# PDFium's marks for a word hyphenated at the end of a line.
_BROKEN_WORD = re.compile("[\x02\ufffe]\n?")


def read_pdf(path: Path) -> Contents:
    """The pages of a PDF document.

    Raises:
        CorpusError: it is encrypted.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if _NEEDS_A_PASSWORD in str(error):
            raise CorpusError("is encrypted: save it without a password first") from None
        raise
    document.init_forms()
    title = document.get_metadata_value("Title")
    blank = "if it is a scan, recognise its text first (for example with ocrmypdf)"
    return Contents(title, _pages(document), quantity(len(document), "page"), blank)


def _pages(document: pypdfium2.PdfDocument) -> Iterator[Section]:
    import pypdfium2

    for number in range(1, len(document) + 1):
        try:
            yield Section("page", number, _text(document, number - 1))
        except pypdfium2.PdfiumError as error:
            yield Section("page", number, "", fault=f"cannot be read: {error}")


def _text(document: pypdfium2.PdfDocument, index: int) -> str:
    if document.formenv:
        page = document[index]
        page.flatten()  # the values of form fields become text of the page
        page.close()
    text = str(document[index].get_textpage().get_text_range(errors="replace"))
    return _BROKEN_WORD.sub("", text.replace("\r\n", "\n"))
