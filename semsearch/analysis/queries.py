"""Queries for BM25: words, phrases, and what is excluded."""

from __future__ import annotations

import re
from typing import NamedTuple

from semsearch.errors import QueryError

#: ``"a phrase"`` and ``-"a phrase"``; ``-word``. -5 is a number. Possessive: it never goes back.
_SPECIAL = re.compile(r"""(?<!\S)(-?)"([^"]++)"(?!\w)|(?<!\S)-([^\W\d]\S*)""")
_WORD = re.compile(r"\w")

#: Each is a condition of its own; SQLite takes expressions up to 1,000 operators deep.
MAX_PHRASES = 100


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

    Raises:
        ArgumentError: there are too many phrases and excluded words.
    """
    required: list[str] = []
    excluded: list[str] = []
    plain: list[str] = []
    words: list[str] = []
    place = 0
    for found in _SPECIAL.finditer(text):
        minus, phrase, word = found.groups()
        if phrase and not _WORD.search(phrase):
            continue  # quotes around nothing
        between = text[place : found.start()]
        place = found.end()
        words.append(between)
        plain.append(between)
        if word or minus:
            excluded.append(word or phrase)
        else:
            required.append(phrase)
            plain.append(phrase)
    if not required and not excluded:
        return WordQuery(text, text, (), ())
    if len(required) + len(excluded) > MAX_PHRASES:
        raise QueryError(
            f"the query has {len(required) + len(excluded):,} phrases and excluded words; "
            f"bm25 and hybrid take {MAX_PHRASES}"
        )
    rest = text[place:]
    return WordQuery(
        _joined([*plain, rest]), _joined([*words, rest]), tuple(required), tuple(excluded)
    )


def _joined(parts: list[str]) -> str:
    return " ".join(" ".join(parts).split())
