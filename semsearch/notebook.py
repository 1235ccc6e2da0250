"""HTML tables for notebooks; all texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

#: Longer passages are truncated.
TEXT_MAX_CHARACTERS = 300

#: CSS classes that keep notebooks from rendering $ in texts as mathematics.
_NOT_MATHEMATICS = "tex2jax_ignore mathjax_ignore"


def table_html(caption: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table of plain texts."""
    head = "".join(f'<th style="text-align: left">{_text(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<table class="{_NOT_MATHEMATICS}"><caption>{_text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f'<td style="text-align: left; vertical-align: top">{_text(text)}</td>'


def _text(text: str) -> str:
    if len(text) > TEXT_MAX_CHARACTERS:
        text = f"{text[:TEXT_MAX_CHARACTERS]}…"
    # <bdi> confines marks that reorder text.
    return f"<bdi>{escape(text)}</bdi>"
