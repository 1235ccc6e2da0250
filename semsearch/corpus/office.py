"""Reads Word documents (DOCX) by way of HTML, and presentations (PPTX) slide by slide."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from semsearch.corpus.archives import check_archive
from semsearch.corpus.html import blocks_of, parse_html, title_of
from semsearch.corpus.sections import Parts, Section, sections_of
from semsearch.limits import MAX_UNPACKED_BYTES
from semsearch.texts import quantity

if TYPE_CHECKING:
    from pptx.presentation import Presentation

    from semsearch.corpus.sources import Source

_STYLES = """
p[style-name='Title'] => title:fresh
p[style-name='Subtitle'] => p:fresh
"""


def read_docx(source: Source) -> Parts:
    """The sections of a Word document, each under a heading; notes are at the end.

    Raises:
        CorpusError: it is encrypted, or too large when unpacked.
    """
    import mammoth

    file = source.seekable(MAX_UNPACKED_BYTES)
    check_archive(file, has_trees=True)
    converted = mammoth.convert_to_html(
        io.BytesIO(file.read()),  # with a named file, it would follow links to other files
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda image: {}),  # images are not even read
    )
    tree = parse_html(converted.value)
    for further in [] if tree is None else tree.findall(".//title")[1:]:
        further.tag = "h1"
    sections = list(sections_of(blocks_of(tree)))
    return Parts(title_of(tree), iter(sections), quantity(len(sections), "section"))


def read_pptx(source: Source) -> Parts:
    """The slides of a presentation, each with its notes.

    Raises:
        CorpusError: it is encrypted, or too large when unpacked.
    """
    import pptx

    file = source.seekable(MAX_UNPACKED_BYTES)
    check_archive(file, has_trees=True)
    presentation = pptx.Presentation(file)
    title = presentation.core_properties.title or ""
    return Parts(title, _slides(presentation), quantity(len(presentation.slides), "slide"))


def _slides(presentation: Presentation) -> Iterator[Section]:
    for number, slide in enumerate(presentation.slides, start=1):
        lines = list(_lines(slide.shapes))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            lines.append(notes.text)
        text = "\n".join(lines).replace("\v", "\n")
        title = slide.shapes.title
        heading = "" if title is None else " ".join(title.text_frame.text.split())
        yield Section("slide", number, text.strip(), heading)


def _lines(shapes: Iterable[Any]) -> Iterator[str]:
    pending = list(shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):  # a group
            pending.extend(list(shape.shapes)[::-1])
        elif shape.has_text_frame:
            if shape.text_frame.text.strip():
                yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield " | ".join(cell.text for cell in row.cells)
