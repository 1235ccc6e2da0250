"""Reads Word documents (DOCX), by way of HTML."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from semsearch.corpus.archives import check_archive
from semsearch.corpus.markup import blocks_of, parse_html, title_of
from semsearch.corpus.sections import Parts, sections_of
from semsearch.limits import MAX_UNPACKED_BYTES
from semsearch.texts import quantity

if TYPE_CHECKING:
    from semsearch.corpus.sources import Source

_STYLES = """
p[style-name='Title'] => title:fresh
p[style-name='Subtitle'] => p:fresh
"""


def read_docx(source: Source) -> Parts:
    """The sections of a Word document, each under a heading; notes stand at its end.

    Raises:
        CorpusError: it is encrypted, or unpacks to too much.
    """
    import mammoth

    file = source.seekable(MAX_UNPACKED_BYTES)
    check_archive(file, has_trees=True)
    converted = mammoth.convert_to_html(
        io.BytesIO(file.read()),  # of a file with a name, it would follow links to others
        style_map=_STYLES,
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda image: {}),  # they are not even read
    )
    tree = parse_html(converted.value.encode("utf-8", "replace"))
    sections = list(sections_of(blocks_of(tree)))
    return Parts(title_of(tree), iter(sections), quantity(len(sections), "section"))
