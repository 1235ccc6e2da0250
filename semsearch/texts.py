"""One text out of parts: a title and a body, several columns, a printed list; counts in words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

# A flat list as Python prints it and pandas writes it, ['it', "it's", 1.5, None], or an array of
# strings as NumPy does, without commas. The escapes are those that repr() uses, for Python's parser
# warns of others on standard error; of the characters that it refuses, repr() writes none.
_NO_SOURCE = r"\\\n\r\0\ud800-\udfff"
_ESCAPE = r"\\(?:[\\'nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})"
_STRING = rf"(?:'(?:[^'{_NO_SOURCE}]|{_ESCAPE})*+'|\"(?:[^\"{_NO_SOURCE}]|{_ESCAPE})*+\")"
_LITERAL = rf"(?:{_STRING}|-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,17}})?|True|False|None)"
_LIST = re.compile(rf"\[{_LITERAL}(?:, {_LITERAL})*+\]|\[{_STRING}(?:\r?\n? {_STRING})*+\]")
_WHITE_SPACE = {code: " " for code in range(0x3001) if chr(code).isspace()}
_ITEM = re.compile(_LITERAL)
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_HEAD = 1000
#: Items take many times the memory of their text.
_LIST_MAX_CHARACTERS = 1_000_000


def joined_text(parts: Iterable[str]) -> str:
    """The parts of a document as its text, each on lines of its own.

    Blank parts are left out, and so is a part that the next one begins with, word by word: a body
    that repeats its title, as Cranfield's do, stands for both.
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
        return False  # as most are, and soon seen
    title, body = one_line(title), one_line(body)
    return body.startswith(title) and not body[len(title) :][:1].isalnum()


def one_line(text: str) -> str:
    """A text whose white space is one space each, and none at its ends."""
    # A list of its words would take many times the memory of the text.
    text = text.translate(_WHITE_SPACE)
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def printed_list(text: str) -> list[Any] | None:
    """The items of a list that Python, or of strings that NumPy, has printed; else None."""
    if len(text) > _LIST_MAX_CHARACTERS or not _LIST.fullmatch(text):
        return None
    return [ast.literal_eval(item) for item in _ITEM.findall(text)]


def sentences_text(items: Iterable[Any]) -> str | None:
    """A list of strings as one text; None where an item is something else."""
    sentences = list(items)
    if all(isinstance(item, str) for item in sentences):
        return " ".join(sentences)
    return None


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in any language, each with the white space behind it.

    The rules of English know the marks of other scripts, and few abbreviations of others.
    """
    from sentencex import segment

    head = text[:_HEAD]
    rules = "ru" if 3 * len(_CYRILLIC.findall(head)) > len(head) else "en"
    return list(segment(rules, text))


def quantity(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``, ``1,000 queries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"
