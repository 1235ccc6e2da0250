"""Reads PDF, presentations (PPTX), and Word documents (DOCX) by way of HTML."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from semsearch.corpus.html import html_contents, parse_html
from semsearch.corpus.pdfcolumns import text_in_columns
from semsearch.corpus.table import Contents, LeftOut, Section
from semsearch.errors import CorpusError, quantity

if TYPE_CHECKING:
    import pypdfium2
    from lxml import etree
    from pptx.presentation import Presentation

_NEEDS_A_PASSWORD = "Incorrect password"  # noqa: S105 - a message of PDFium
# PDFium's marks for a word hyphenated at the end of a line.
_BROKEN_WORD = re.compile("[\x02\ufffe]\n?")
_OOXML = "http://schemas.openxmlformats.org"
_WORDS, _MATHS = (
    f"{{{_OOXML}/{part}/2006/{name}}}"
    for part, name in (("wordprocessingml", "main"), ("officeDocument", "math"))
)
_CHARTS, _DRAWING = (f"{{{_OOXML}/drawingml/2006/{name}}}" for name in ("chart", "main"))
_REFERENCE = f"{{{_OOXML}/officeDocument/2006/relationships}}"
_CHART = re.compile(r"word/charts/chart[^/]*\.xml")
_PART = re.compile(r"word/(?:document|footnotes|endnotes|comments)\.xml")
_TARGET = re.compile(rb"""\bId=["']([^"']+)["']""")
#: Titles that programs write by themselves.
_NO_TITLE = re.compile(
    r"\A\s*(?:untitled.*|(?:powerpoint[- ]|pr[eä]sentation|presentation|document|dokument|slide"
    r"|book|mappe)[- ]?(?:presentation)?\d*|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?"
    r"|pptx?|xlsx?|odt|odp|rtf|tex|dvi|ps|pdf|indd|qxp|html?|txt))\s*\Z",
    re.IGNORECASE,
)
_STYLES = """
p[style-name='Title'] => title:fresh
p[style-name='Subtitle'] => p:fresh
"""


def read_docx(path: Path) -> Contents:
    """The sections of a Word document, each under a heading; notes are at the end."""
    import mammoth

    file, charts = _plainer_docx(path)
    converted = mammoth.convert_to_html(
        file,  # with a named file, it would follow links to other files
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda image: {}),  # images are not even read
    )
    tree = parse_html(converted.value)
    for further in tree.findall(".//title")[1:]:
        further.tag = "h1"  # a title would be left out
    contents = html_contents(tree)
    if charts:
        section = Section("section", len(list(contents.sections)) + 1, "\n".join(charts))
        contents = replace(contents, sections=[*contents.sections, section])
    return contents


def _plainer_docx(path: Path) -> tuple[io.BytesIO, list[str]]:
    """A copy that mammoth reads wholly, and the labels of charts.

    Equations become runs of text, and references without a target are removed.
    """
    from lxml import etree

    copy, charts = io.BytesIO(), []
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as written:
        for name in archive.namelist():
            content = archive.read(name)
            if _CHART.fullmatch(name):
                charts.append(" | ".join(dict.fromkeys(_labels(etree.fromstring(content)))))
            elif _PART.fullmatch(name):
                targets = f"word/_rels/{PurePath(name).name}.rels"
                known = archive.read(targets) if targets in archive.namelist() else b""
                content = _plainer_part(content, set(_TARGET.findall(known)))
            written.writestr(name, content)
    copy.seek(0)
    return copy, charts


def _plainer_part(content: bytes, targets: set[bytes]) -> bytes:
    from lxml import etree

    tree = etree.fromstring(content)
    for equation in list(tree.iter(f"{_MATHS}oMath")):
        run = etree.Element(f"{_WORDS}r")
        etree.SubElement(run, f"{_WORDS}t").text = "".join(_texts(equation, f"{_MATHS}t"))
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    for element in tree.iter():
        for name, value in element.items():
            if name.startswith(_REFERENCE) and str(value).encode() not in targets:
                del element.attrib[name]
    return bytes(etree.tostring(tree))


def _labels(chart: etree._Element) -> Iterator[str]:
    """The names of the series and the categories of a chart, and its titles."""
    for tag in ("tx", "cat", "title"):
        for part in chart.iter(f"{_CHARTS}{tag}"):
            yield from _texts(part, f"{_CHARTS}v", f"{_DRAWING}t")


def _texts(element: etree._Element, *tags: str) -> list[str]:
    return [str(part.text) for part in element.iter(*tags) if part.text]


def read_pptx(path: Path) -> Contents:
    """The slides of a presentation, each with its notes."""
    import pptx

    presentation = pptx.Presentation(str(path))
    title = _NO_TITLE.sub("", presentation.core_properties.title or "")
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
            yield " | ".join(dict.fromkeys(_labels(shape.chart._chartSpace)))


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
    title = _NO_TITLE.sub("", document.get_metadata_value("Title"))
    blank = "if pages are scans, recognise their text first (for example with ocrmypdf)"
    left_out = LeftOut()
    left_out.add("attachment", count=document.count_attachments())
    pages = _pages(document, left_out)
    return Contents(title, pages, quantity(len(document), "page"), blank, left_out)


def _pages(document: pypdfium2.PdfDocument, left_out: LeftOut) -> Iterator[Section]:
    import pypdfium2

    for number in range(1, len(document) + 1):
        try:
            page = document[number - 1]
            left_out.add("annotation", count=_notes(page))
            if document.formenv:
                page.flatten()  # the values of form fields become text of the page
                page.close()
                page = document[number - 1]
            letters = page.get_textpage()
            text = text_in_columns(letters) or str(letters.get_text_range(errors="replace"))
            text = _BROKEN_WORD.sub("", text.replace("\r\n", "\n"))
            yield Section("page", number, text)
        except pypdfium2.PdfiumError as error:
            yield Section("page", number, "", fault=f"cannot be read: {error}")


def _notes(page: pypdfium2.PdfPage) -> int:
    """The number of notes on a page, such as comments: no links, fields or windows of others."""
    from pypdfium2 import raw

    others = {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP}
    notes = 0
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        notes += raw.FPDFAnnot_GetSubtype(annotation) not in others
        raw.FPDFPage_CloseAnnot(annotation)
    return notes
