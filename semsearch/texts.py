"""Functions on texts: joining parts, printed lists, sentences, plurals, tables for notebooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from html import escape
from itertools import accumulate, pairwise
from typing import Any

# A flat list as printed by Python and pandas, ['it', "it's", 1.5, None], or an array of strings as
# printed by NumPy, without commas. Escapes are those of repr(), since Python's parser warns of
# others on standard error; repr() never writes the characters that the parser rejects.
_NO_SOURCE = r"\\\n\r\0\ud800-\udfff"
_ESCAPE = r"\\(?:[\\'nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})"
_STRING = rf"(?:'(?:[^'{_NO_SOURCE}]|{_ESCAPE})*+'|\"(?:[^\"{_NO_SOURCE}]|{_ESCAPE})*+\")"
_LITERAL = rf"(?:{_STRING}|-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,17}})?|True|False|None)"
_LIST = re.compile(rf"\[{_LITERAL}(?:, {_LITERAL})*+\]|\[{_STRING}(?:\r?\n? {_STRING})*+\]")
_WHITE_SPACE = {code: " " for code in range(0x3001) if chr(code).isspace()}
_LINE_ENDS = "\x85\u2028\u2029"
#: White space that is longer than a byte in UTF-8, by white space of one byte.
_SHORT_SPACE = {
    code: "\n" if chr(code) in _LINE_ENDS else " " for code in _WHITE_SPACE if code > 127
}
_ITEM = re.compile(_LITERAL)
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_HEAD = 1000
#: How Python's "surrogateescape" represents an undecodable byte (PEP 383).
ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
#: Longer texts are truncated in tables for notebooks.
CELL_MAX_CHARACTERS = 300
#: Items take many times the memory of their text.
_LIST_MAX_CHARACTERS = 1_000_000


def joined_text(parts: Iterable[str]) -> str:
    """Join the parts of a document (title, body) by line breaks.

    Blank parts are left out, and so is a part that the next one begins with: the bodies in
    Cranfield repeat their titles.
    """
    kept: list[str] = []
    for part in parts:
        if part.strip():
            if kept and _begins_with(part, kept[-1]):
                kept.pop()
            kept.append(part)
    return "\n".join(kept)


def _begins_with(body: str, title: str) -> bool:
    if not body.lstrip().startswith(title.lstrip()[:1]):
        return False  # a quick check for most texts
    title, body = one_line(title), one_line(body)
    return body.startswith(title) and not body[len(title) :][:1].isalnum()


def one_line(text: str) -> str:
    """A text with each run of white space replaced by a space, and none at its ends."""
    # str.split would take many times the memory of the text.
    text = text.translate(_WHITE_SPACE)
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def printed_list(text: str) -> list[Any] | None:
    """The items of a list printed by Python, or of strings printed by NumPy; else None."""
    if len(text) > _LIST_MAX_CHARACTERS or not _LIST.fullmatch(text):
        return None
    return [ast.literal_eval(item) for item in _ITEM.findall(text)]


def sentences_text(items: Iterable[Any]) -> str | None:
    """Join a list of strings into one text; None if an item is not a string."""
    sentences = list(items)
    if all(isinstance(item, str) for item in sentences):
        return " ".join(sentences)
    return None


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in any language, each with the white space after it.

    The rules for English handle the punctuation of other scripts, but few of their abbreviations.
    """
    from sentencex import segment

    head = text[:_HEAD]
    rules = "ru" if 3 * len(_CYRILLIC.findall(head)) > len(head) else "en"
    # sentencex 1.0 panics at "B\xa0.", as it takes white space for one byte.
    found = segment(rules, text.translate(_SHORT_SPACE))
    ends = accumulate(map(len, found), initial=0)
    return [text[start:end] for start, end in pairwise(ends)]


def quantity(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``, ``1,000 queries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def first_escaped(text: str) -> str:
    """The first undecodable byte: ``byte 0xe9``."""
    escaped = ESCAPED_BYTE.search(text)
    return f"byte 0x{ord(escaped.group()) - 0xDC00:02x}" if escaped else "a byte"


def table_html(caption: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table of plain texts for notebooks; long texts are truncated."""
    head = "".join(f'<th style="text-align: left">{_html(name)}</th>' for name in header)
    style = 'style="text-align: left; vertical-align: top"'
    body = "".join(
        f"<tr>{''.join(f'<td {style}>{_html(text)}</td>' for text in row)}</tr>" for row in rows
    )
    # The classes keep notebooks from rendering $ in texts as mathematics.
    return (
        f'<table class="tex2jax_ignore mathjax_ignore"><caption>{_html(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _html(text: str) -> str:
    if len(text) > CELL_MAX_CHARACTERS:
        text = f"{text[:CELL_MAX_CHARACTERS]}…"
    # <bdi> confines marks that reorder text.
    return f"<bdi>{escape(text)}</bdi>"
