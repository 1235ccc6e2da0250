"""Reads Word documents (DOCX) and e-books (EPUB) by way of HTML; presentations (PPTX)."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag
from zipfile import ZipFile

from semsearch.corpus.html import blocks_of, decoded, html_contents, parse_html
from semsearch.corpus.sections import Contents, Section, sections_of
from semsearch.errors import CorpusError, first_line, quantity

if TYPE_CHECKING:
    from lxml import etree
    from pptx.presentation import Presentation

_STYLES = """
p[style-name='Title'] => title:fresh
p[style-name='Subtitle'] => p:fresh
"""


_CONTAINER = "META-INF/container.xml"
_PAGES = ("application/xhtml+xml", "text/html")


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
    for further in [] if tree is None else tree.findall(".//title")[1:]:
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


def read_epub(path: Path) -> Contents:
    """The sections of a book, each under a heading; each chapter begins a new one.

    Raises:
        CorpusError: it is not an EPUB.
    """
    archive = ZipFile(path)
    title, chapters = _book(archive)
    return Contents(title, _sections(archive, chapters), quantity(len(chapters), "chapter"))


def _sections(archive: ZipFile, chapters: list[str]) -> Iterator[Section]:
    number = 1
    for path in chapters:
        name = posixpath.basename(path)
        try:
            found = list(sections_of(blocks_of(parse_html(decoded(archive.read(path)))), number))
        except Exception as error:  # damaged chapters raise anything
            found = [Section("section", number, "", fault=f"chapter {name}: {first_line(error)}")]
        yield from found
        number += len(found)


def _book(archive: ZipFile) -> tuple[str, list[str]]:
    """The title of a book, and the paths of its chapters in the archive."""
    container = _parsed(archive, _CONTAINER)
    root = container.find(".//{*}rootfile")
    package_path = "" if root is None else root.get("full-path", "")
    if package_path not in archive.namelist():
        raise CorpusError("is not an EPUB: its package document is missing")
    package = _parsed(archive, package_path)
    items = {
        item.get("id"): item
        for item in package.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
    }
    order = [item.get("idref") for item in package.iterfind(".//{*}spine/{*}itemref")]
    folder = posixpath.dirname(package_path)
    paths = [
        posixpath.normpath(posixpath.join(folder, _path(items[name].get("href", ""))))
        for name in order
        if name in items
    ]
    title = package.findtext(".//{http://purl.org/dc/elements/1.1/}title") or ""
    return title, list(dict.fromkeys(paths))  # several items may be parts of one chapter


def _path(link: str) -> str:
    return unquote(urldefrag(link).url)


def _parsed(archive: ZipFile, path: str) -> etree._Element:
    from lxml import etree

    # Entities are not expanded, and nothing is fetched.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(archive.read(path), parser)
