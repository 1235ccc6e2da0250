"""BM25, the lexical baseline: SQLite's FTS5, in an index and over texts in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple, Self

from semsearch.analysis import FTS5_TOKENIZER, query_terms, searchable
from semsearch.errors import ArgumentError

__all__ = ["MAX_QUERY_WORDS", "LexicalHit", "LexicalIndex", "match_expression"]

#: FTS5 takes 2.5 kB and 60 µs for each.
MAX_QUERY_WORDS = 10_000


def match_expression(text: str) -> str | None:
    """What FTS5 is asked for a query: any of its words; None when it has none.

    Raises:
        ArgumentError: it has too many.
    """
    words = query_terms(text)
    if len(words) > MAX_QUERY_WORDS:
        raise ArgumentError(
            f"the query has {len(words):,} words; bm25 and hybrid take {MAX_QUERY_WORDS:,}"
        )
    return " OR ".join(words) or None


class LexicalHit(NamedTuple):
    """A text that shares words with a query."""

    place: int  #: among the texts, from 0
    score: float


class LexicalIndex:
    """BM25 over whole texts in memory (k1 = 1.2, b = 0.75; Robertson & Zaragoza 2009).

    Args:
        texts: what is searched. Of equal scores, the one that comes first here wins.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE texts "
            f"USING fts5(text, content='', tokenize=\"{FTS5_TOKENIZER}\")"
        )
        self._connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(map(searchable, texts))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Free its memory."""
        self._connection.close()

    def search(self, query: str, k: int) -> list[LexicalHit]:
        """The `k` best texts, best first; fewer when fewer share a word with the query."""
        match = match_expression(query)
        if match is None:
            return []
        statement = (
            "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?"
        )
        with closing(self._connection.execute(statement, [match, k])) as rows:
            return [LexicalHit(*row) for row in rows]
