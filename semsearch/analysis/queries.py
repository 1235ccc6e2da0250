"""Queries for BM25: words, phrases, and what is excluded."""

from __future__ import annotations

import re
from typing import NamedTuple

#: ``"a phrase"`` and ``-"a phrase"``; ``-word``. -5 is a number.
_SPECIAL = re.compile(r"""(?<!\S)(-?)"([^"]*\w[^"]*)"(?!\w)|(?<!\S)-([^\W\d]\S*)""")


class WordQuery(NamedTuple):
    """A query as BM25 reads it."""

    plain: str  #: without quotes, and without what is excluded
    words: str  #: without its phrases, too
    required: tuple[str, ...]  #: phrases that a document must have
    excluded: tuple[str, ...]  #: words and phrases that it must not have


def parse_query(text: str) -> WordQuery:
    """The words of a query, the phrases in quotes, and what a minus sign excludes.

    >>> parse_query('"carpe diem" film -comedy')
    WordQuery(plain='carpe diem film', words='film', required=('carpe diem',), excluded=('comedy',))
    """
    required: list[str] = []
    excluded: list[str] = []

    def plain(found: re.Match[str]) -> str:
        minus, phrase, word = found.groups()
        if word or minus:
            excluded.append(word or phrase)
            return " "
        required.append(phrase)
        return str(phrase)

    without_signs = _SPECIAL.sub(plain, text)
    if not required and not excluded:
        return WordQuery(text, text, (), ())
    words = _SPECIAL.sub(" ", text)
    return WordQuery(
        " ".join(without_signs.split()), " ".join(words.split()), tuple(required), tuple(excluded)
    )
