"""Reads PDF, presentations (PPTX), and Word documents (DOCX) by way of HTML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.corpus.html import html_contents, parse_html
from semsearch.corpus.table import Contents, Section
from semsearch.errors import CorpusError, quantity

if TYPE_CHECKING:
    import pypdfium2
    from pptx.presentation import Presentation

_NEEDS_A_PASSWORD = "Incorrect password"  # noqa: S105 - a message of PDFium
# PDFium's marks for a word hyphenated at the end of a line.
_BROKEN_WORD = re.compile("[\x02\ufffe]\n?")
_STYLES = """
p[style-name='Title'] => title:fresh
p[style-name='Subtitle'] => p:fresh
"""


def read_docx(path: Path) -> Contents:
    """The sections of a Word document, each under a heading; notes are at the end."""
    import mammoth

    converted = mammoth.convert_to_html(
        io.BytesIO(path.read_bytes()),  # with a named file, it would follow links to other files
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda image: {}),  # images are not even read
    )
    tree = parse_html(converted.value)
    for further in tree.findall(".//title")[1:]:
        further.tag = "h1"  # a title would be left out
    return html_contents(tree)


def read_pptx(path: Path) -> Contents:
    """The slides of a presentation, each with its notes."""
    import pptx

    presentation = pptx.Presentation(str(path))
    title = presentation.core_properties.title or ""
    return Contents(title, _slides(presentation), quantity(len(presentation.slides), "slide"))


def _slides(presentation: Presentation) -> Iterator[Section]:
    for number, slide in enumerate(presentation.slides, start=1):
        lines = list(_lines(slide.shapes))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            lines.append(notes.text)
        yield Section("slide", number, "\n".join(lines).replace("\v", "\n").strip())


def _lines(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _lines(shape.shapes)
        elif shape.has_text_frame:
            if shape.text_frame.text.strip():
                yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield " | ".join(cell.text for cell in row.cells)
        elif getattr(shape, "has_chart", False):
            for plot in shape.chart.plots:
                yield " | ".join([*map(str, plot.categories), *(one.name for one in plot.series)])


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
