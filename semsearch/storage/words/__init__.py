"""Converts texts and queries to the words that BM25 compares, as SQLite FTS5 expects them.

`forms` normalises words; an `Analyser` prepares texts and queries for FTS5.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from semsearch.errors import ArgumentError, MissingExtraError, check_text
from semsearch.storage.words import stopwords
from semsearch.storage.words.forms import (
    folded,
    in_pairs,
    pairs,
    plain,
    run_pattern,
    spelled,
    words,
)

#: FTS5 needs 2.5 kB and 60 µs per word.
MAX_QUERY_WORDS = 10_000

#: So many words of a query are enough without stop words.
ENOUGH_WORDS = 3

#: FTS5's words: runs of letters, digits and marks, without accents.
_TOKENIZER = "unicode61 remove_diacritics 2 categories 'L* N* Mn Mc'"


class Language(NamedTuple):
    """The stemmer and the stop words of a language.

    Args:
        name: a Snowball stemmer, or ``none``.
        stop_words: removed from queries that have other words.
    """

    name: str
    stop_words: tuple[str, ...] = ()


#: No stemming, no stop words.
NONE = "none"


def language(name: str) -> Language:
    """The language with this name, with its stop words from bm25s if there is a list.

    Args:
        name: a Snowball stemmer (``english``, ``german``, …), or ``none``.

    Raises:
        ArgumentError: there is no such stemmer.
        MissingExtraError: the extra ``languages`` is not installed.
    """
    check_text("the language", name)
    if name == NONE:
        return Language(NONE)
    algorithms = _snowball().algorithms()
    from bm25s import stopwords

    if name not in algorithms:
        known = ", ".join([*algorithms, NONE])
        raise ArgumentError(f"no stemmer for '{name}' (languages: {known})")
    lists = {"ENGLISH": stopwords.STOPWORDS_EN, **vars(stopwords)}
    found = lists.get("ENGLISH" if name == "english" else f"STOPWORDS_{name.upper()}", ())
    return Language(name, tuple(sorted({folded(word) for word in found})))


def _snowball() -> Any:
    """The module of PyStemmer."""
    try:
        import Stemmer
    except ImportError as error:
        raise MissingExtraError("PyStemmer", "languages", "stemming by language") from error
    return Stemmer


class Analyser:
    """Prepares texts and queries for FTS5.

    Args:
        language: the stemmer and stop words; None is FTS5's own Porter stemmer for English (1980),
            with English stop words.
        frequent_words: words that are removed from queries that have others, case-folded.
    """

    def __init__(
        self, language: Language | None = None, frequent_words: Collection[str] = ()
    ) -> None:
        self._language = language
        stop_words = stopwords.ENGLISH if language is None else language.stop_words
        self._stop_words, self._frequent_words = frozenset(stop_words), frozenset(frequent_words)

    @property
    def tokenizer(self) -> str:
        """The tokenizer of the FTS5 table."""
        return _TOKENIZER if self._language else f"porter {_TOKENIZER}"

    def searchable(self, text: str) -> str:
        """The text that FTS5 indexes for a text."""
        if self._language is None:
            return (
                spelled(text) if text.isascii() else plain(" ".join(words(in_pairs(folded(text)))))
            )
        return " ".join(self._stems(self._words(in_pairs(folded(text)))))

    def words(self, text: str) -> set[str]:
        """The words of a text, case-folded; none of scripts without spaces between words."""
        return set().union(*map(self._words, _pieces(text)[::2]))

    def match_expression(self, text: str, phrases: Sequence[str] = ()) -> str | None:
        """An FTS5 query for any of the words and phrases; None if there are none.

        Raises:
            ArgumentError: there are too many words.
        """
        terms = self.query_terms(text)
        terms += [term for term in map(self.phrase_term, phrases) if term]
        if len(terms) > MAX_QUERY_WORDS:
            raise ArgumentError(
                f"the query has {len(terms):,} words; bm25 and hybrid accept {MAX_QUERY_WORDS:,}"
            )
        return " OR ".join(terms) or None

    def query_terms(self, text: str) -> list[str]:
        """The words of a query as FTS5 terms.

        Frequent words are left out of a query that has others, and stop words of one that has at
        least `ENOUGH_WORDS` others: they help in a short one, such as a title.
        """
        found: list[tuple[str, int]] = []  # with 0 for stop words, -1 for frequent ones, else 1
        for place, piece in enumerate(_pieces(text)):
            if place % 2 == 0:
                listed = self._words(piece)
                for word, stem in zip(listed, self._stems(listed), strict=True):
                    worth = -1 if word in self._frequent_words else word not in self._stop_words
                    found.append((f'"{stem}"', int(worth)))
            elif len(run := pairs(piece)) > 1:
                found += [(f'"{pair}"', 1) for pair in run[:-1]]
            else:
                found.append((f'"{run[0]}" *', 1))  # one character: all pairs that start with it
        others = sum(worth == 1 for _, worth in found)
        best = max((worth for _, worth in found), default=0)
        least = best if others >= ENOUGH_WORDS or best < 1 else 0
        return [term for term, worth in found if worth >= least]

    def phrase_term(self, text: str) -> str | None:
        """A phrase as an FTS5 term: its consecutive words; None without words."""
        pieces = [
            pairs(piece) if place % 2 else self._stems(self._words(piece))
            for place, piece in enumerate(_pieces(text))
        ]
        terms = [term for piece in pieces for term in piece]
        if not terms:
            return None
        # The last character of a run is single here; in a text, another may follow it.
        return f'"{" ".join(terms)}"' + ("" if pieces[-1] else " *")

    @cached_property
    def _stemmer(self) -> Any:
        if self._language is None or self._language.name == NONE:
            return None
        return _snowball().Stemmer(self._language.name)

    def _words(self, piece: str) -> list[str]:
        # FTS5 splits words at underscores, but only after stemming.
        return words(piece if self._language is None else piece.replace("_", " "))

    def _stems(self, listed: list[str]) -> list[str]:
        stems = self._stemmer.stemWords(listed) if self._stemmer else listed
        return [plain(stem) for stem in stems]


def _pieces(text: str) -> list[str]:
    """A text cut into parts with spaces between words and, at odd positions, runs without."""
    return [spelled(text.lower())] if text.isascii() else run_pattern().split(folded(text))


#: ``"a phrase"``; after a blank, ``-"a phrase"`` and ``-word``, but not -5. Possessive, without
#: backtracking.
_SPECIAL = re.compile(r"""(?<!\S)"([^"]++)"(?!\w)|(?<= )-(?:"([^"]++)"(?!\w)|([^\W\d]\S*))""")
_WORD = re.compile(r"\w")
#: The second dash of a pair: "the card -a new one- was declined".
_CLOSING_DASH = re.compile(r"\S-(?!\w)")


class WordQuery(NamedTuple):
    """A query parsed for BM25."""

    words: str  #: without quotes and excluded words
    phrases: tuple[str, ...] = ()  #: passages that contain them rank above others
    excluded: tuple[str, ...] = ()  #: words and phrases that a document must not contain


def parse_query(text: str) -> WordQuery:
    """Parse the words of a query, its quoted phrases, and what a minus sign excludes.

    A single word in quotes is a word like others. Minus signs exclude nothing if no other word is
    left.

    >>> parse_query('"carpe diem" film -comedy')
    WordQuery(words='carpe diem film', phrases=('carpe diem',), excluded=('comedy',))
    """
    phrases: dict[str, None] = {}
    excluded: dict[str, None] = {}
    kept: list[str] = []
    place = 0
    last_dash = max((dash.start() for dash in _CLOSING_DASH.finditer(text)), default=0)
    for found in _SPECIAL.finditer(text):
        quoted = found[1]
        content = quoted or found[2] or found[3]
        if not _WORD.search(content) or (quoted is None and found.start() < last_dash):
            continue
        kept.append(text[place : found.start()])
        place = found.end()
        if quoted is None:
            excluded[content] = None
        else:
            kept.append(quoted)
            if sum(1 for word in quoted.split() if _WORD.search(word)) > 1:
                phrases[quoted] = None
    words = " ".join("".join([*kept, text[place:]]).split())
    if not kept or not _WORD.search(words):
        return WordQuery(text)
    return WordQuery(words, tuple(phrases), tuple(excluded))
