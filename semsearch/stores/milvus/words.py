"""BM25 on Milvus, as the local store ranks (k1 = 1.2, b = 0.75; Robertson & Zaragoza 2009).

A passage is a sparse vector of its words' weights, a query one of its words' inverse document
frequencies; the inner product is the score. Words are those of SQLite's FTS5, as in the local
store, known by the numbers that their hashes are. In how many passages each of them is stands in
the collection of terms.

Milvus' own BM25 is not used: that of milvus-lite 3.2.2 counts words file by file, so that a passage
which was added later has a score by itself.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from semsearch.analysis import Analyser
from semsearch.stores.milvus.collections import listed, terms_of, without_vector
from semsearch.stores.milvus.connection import Connection, Row

K1, B = 1.2, 0.75
#: The score of a word that more than half of the passages have, as in FTS5.
MIN_IDF = 1e-6

#: How often a passage has each term.
Counts = Mapping[int, int]
#: Weights by term.
Sparse = dict[int, float]

#: Milvus has no empty vectors; no word is this term.
_NO_TERM = 0
_MARK = "\x02"
_MARKED = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
_HIGHLIGHTED = "SELECT rowid, highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?"


class Totals(NamedTuple):
    """Of all passages."""

    passages: int = 0
    words: int = 0

    def changed(self, added: Iterable[Counts], removed: Iterable[Counts]) -> Totals:
        """After some passages have come and others have gone."""
        passages, words = self
        for sign, listed_counts in ((1, added), (-1, removed)):
            for counts in listed_counts:
                passages += sign
                words += sign * sum(counts.values())
        return Totals(passages, words)

    def plus(self, other: Totals) -> Totals:
        """After further passages have come."""
        return Totals(self.passages + other.passages, self.words + other.words)

    def weights(self, counts: Counts) -> Sparse:
        """A passage as a sparse vector, by the mean length of the passages."""
        mean = self.words / self.passages if self.words else 1.0
        norm = K1 * (1 - B + B * sum(counts.values()) / mean)
        found = {term: count * (K1 + 1) / (count + norm) for term, count in counts.items()}
        return found or {_NO_TERM: 1.0}

    def idf(self, passages: int) -> float:
        """The weight of a word that so many passages have (inverse document frequency)."""
        return max(
            math.log((self.passages - passages + 0.5) / (passages + 0.5))
            if passages < self.passages
            else 0.0,
            MIN_IDF,
        )


class WordCounts(NamedTuple):
    """Of some passages."""

    totals: Totals = Totals()
    terms: Mapping[int, int] = {}  #: how many of them have each term

    @classmethod
    def of(cls, counts: Sequence[Counts]) -> WordCounts:
        """Passages by how often they have each term."""
        return cls(Totals().changed(counts, []), Counter(term for each in counts for term in each))


class WordChange:
    """Changes of the counts in one commit.

    Args:
        totals: before it.
        analyser: reads texts as BM25 does.
    """

    def __init__(self, totals: Totals, analyser: Analyser) -> None:
        self.totals = totals
        self.terms = Counter[int]()  #: how many more passages have each term
        self._analyser = analyser

    def add(self, counts: WordCounts) -> None:
        """Count passages that are added."""
        self.totals = self.totals.plus(counts.totals)
        self.terms.update(counts.terms)

    def remove(self, texts: Sequence[str]) -> None:
        """Count passages that are removed."""
        counts = count_words(texts, self._analyser)
        self.totals = self.totals.changed([], counts)
        self.terms.subtract(term for each in counts for term in each)


def count_words(texts: Sequence[str], analyser: Analyser) -> list[Counts]:
    """How often each text has each term."""
    return _counts([analyser.searchable(text) for text in texts], analyser)


def _counts(searchable: Sequence[str], analyser: Analyser) -> list[Counts]:
    found: list[Counter[int]] = [Counter() for _ in searchable]
    with _index(searchable, analyser) as database:
        rows = database.execute("SELECT doc, term, count(*) FROM instances GROUP BY doc, term")
        for place, word, count in rows:
            found[place][_number(word)] += count
    return list(found)


def matched_words(
    match: str | None, texts: Mapping[int, str], analyser: Analyser
) -> dict[int, list[str]]:
    """The words that match a query of FTS5, of the texts that do, by their keys."""
    if match is None:
        return {}
    keys = list(texts)
    with _index([analyser.searchable(text) for text in texts.values()], analyser) as database:
        rows = database.execute(_HIGHLIGHTED, [_MARK, _MARK, match]).fetchall()
    return {
        keys[place]: list(dict.fromkeys(_MARKED.findall(marked.lower()))) for place, marked in rows
    }


def query_vector(
    connection: Connection, text: str, analyser: Analyser, totals: Totals, since: int
) -> Sparse:
    """A query as a sparse vector; empty where no passage has one of its words."""
    words = " ".join(term.rstrip(" *").strip('"') for term in analyser.query_terms(text))
    [counts] = _counts([words], analyser)
    held = held_terms(connection, list(counts), since)
    return {term: counts[term] * totals.idf(held[term]) for term in sorted(held) if held[term] > 0}


def held_terms(connection: Connection, terms: Sequence[int], since: int) -> dict[int, int]:
    """In how many passages the known ones of these terms are."""
    return {
        int(row["term"]): int(row["passages"])
        for one_of in listed("term", terms)
        for row in connection.query(terms_of(connection), one_of, ["term", "passages"], since)
    }


def change_terms(connection: Connection, change: Mapping[int, int], since: int) -> None:
    """Add to the numbers of passages that have these terms."""
    terms = [term for term, count in change.items() if count]
    held = held_terms(connection, terms, since)
    rows: Iterator[Row] = (
        {"term": term, "passages": max(0, held.get(term, 0) + change[term])} for term in terms
    )
    connection.upsert(terms_of(connection), without_vector(list(rows)))


def _number(word: str) -> int:
    """From 1 to below 2³² - 1, as Milvus numbers the dimensions of a sparse vector."""
    hashed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
    return 1 + hashed % (2**32 - 3)


@contextmanager
def _index(searchable: Sequence[str], analyser: Analyser) -> Iterator[Any]:
    """An index of FTS5 in memory, whose rows are numbered as the texts are."""
    database = sqlite3.connect(":memory:")
    try:
        tokenizer = analyser.tokenizer
        database.execute(f'CREATE VIRTUAL TABLE texts USING fts5(words, tokenize="{tokenizer}")')
        database.execute("CREATE VIRTUAL TABLE instances USING fts5vocab(texts, 'instance')")
        database.executemany("INSERT INTO texts(rowid, words) VALUES (?, ?)", enumerate(searchable))
        yield database
    finally:
        database.close()
