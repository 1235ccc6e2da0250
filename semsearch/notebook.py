"""Tables as notebooks show them: HTML in which nothing of a text is markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

#: A passage is cut there.
TEXT_MAX_CHARACTERS = 300

#: What keeps notebooks from reading $ in texts as mathematics.
_NOT_MATHEMATICS = "tex2jax_ignore mathjax_ignore"


def table_html(caption: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; all that is given is text."""
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
    # Marks that reorder text end with its element.
    return f"<bdi>{escape(text)}</bdi>"
