"""Functions on texts: joining parts, parsing printed lists, splitting sentences."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
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
_LINE_ENDS = "\x85\u2028\u2029"
#: White space that is longer than a byte in UTF-8, by white space of one byte.
_SHORT_SPACE = {
    code: "\n" if chr(code) in _LINE_ENDS else " "
    for code in range(128, 0x3001)
    if chr(code).isspace()
}
_ITEM = re.compile(_LITERAL)
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_HEAD = 1000
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
    return " ".join(text.split())


def printed_list(text: str) -> list[Any] | None:
    """The items of a list printed by Python, or of strings printed by NumPy; else None."""
    if len(text) > _LIST_MAX_CHARACTERS or not _LIST.fullmatch(text):
        return None
    return [ast.literal_eval(item) for item in _ITEM.findall(text)]


def sentences_text(items: Sequence[Any]) -> str | None:
    """Join a list of strings into one text; None if an item is not a string."""
    return " ".join(items) if all(isinstance(item, str) for item in items) else None


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


@cache
def marks() -> str:
    """Nonspacing and spacing marks: most blocks that have some."""
    places = (*range(0x300, 0x2100), 0x3099, 0x309A, *range(0xA600, 0xAC00))
    return "".join(mark for mark in map(chr, places) if unicodedata.category(mark) in ("Mn", "Mc"))
