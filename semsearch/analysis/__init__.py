"""The words of texts and queries, as BM25 compares them.

`forms` writes each word in one way, `queries` reads phrases and excluded words, and an `Analyser`
makes of both what SQLite's FTS5 is given.
"""

from __future__ import annotations

from semsearch.analysis.analyser import MAX_QUERY_WORDS, Analyser, Language, language
from semsearch.analysis.queries import parse_query

__all__ = ["MAX_QUERY_WORDS", "Analyser", "Language", "language", "parse_query"]
