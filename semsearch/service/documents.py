"""Documents for display: Markdown as HTML that is safe to show."""

from __future__ import annotations

import re

from semsearch.records import Document

#: Ids of Markdown files, and of parts of them.
_MARKDOWN = re.compile(r"\.(md|markdown)(#|$)", re.IGNORECASE)
_BLOCKS = ("paragraph_open", "heading_open", "fence", "code_block", "tr_open")


def html_of(document: Document, start: int, end: int) -> str | None:
    """The text of a Markdown file as HTML; None for other documents.

    HTML in the text is shown as text; pictures are left out. Blocks that hold some of the
    characters [start, end) have the class ``passage``.
    """
    if not _MARKDOWN.search(document.id or ""):
        return None
    import nh3
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(document.text)
    if start < end:
        first, last = document.text.count("\n", 0, start), document.text.count("\n", 0, end)
        for token in tokens:
            lines = token.map
            if token.type in _BLOCKS and lines and lines[0] <= last and lines[1] > first:
                token.attrJoin("class", "passage")
    tags = nh3.ALLOWED_TAGS - {"img"}
    return nh3.clean(
        parser.renderer.render(tokens, parser.options, {}),
        tags=tags,
        allowed_classes={tag: {"passage"} for tag in tags},
        url_schemes={"http", "https", "mailto"},
    )
