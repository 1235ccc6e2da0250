"""What data sets consist of."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RetrievalSet", "ScoredPair"]


class ScoredPair(NamedTuple):
    """Two sentences and how similar people found them."""

    left: str
    right: str
    gold: float


class RetrievalSet(NamedTuple):
    """Documents, queries, and which documents answer which query."""

    documents: dict[str, str]  #: text by id
    queries: dict[str, str]  #: text by id
    qrels: dict[str, dict[str, int]]  #: relevance by query id and document id
