"""Search options and their validation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, TypedDict

from semsearch.arguments import (
    check_choice,
    check_number,
    check_text,
    check_texts,
    check_whole_number,
    shown,
)
from semsearch.errors import ArgumentError, CombinationError
from semsearch.protocols import Reranker
from semsearch.records import SearchMode

#: Ids of documents, or one, or weights by id.
Examples: TypeAlias = str | Iterable[str] | Mapping[str, float]

#: How many documents a cross-encoder reads by default.
RERANK_DEPTH = 100

#: The weight of `unlike` documents in a query; texts and `like` documents have 1.
UNLIKE_WEIGHT = -0.5


class Fusion(Enum):
    """How hybrid search fuses two rankings; see `semsearch.search.fusion`."""

    ZSCORES = "zscores"
    RRF = "rrf"


class SearchOptions(TypedDict, total=False):
    """What `search` and `search_many` take, of an index as of a retriever. All can be left out.

    Attributes:
        offset: how many of the best hits to skip, for pages after the first.
        min_score: drop hits with a lower score.
        where: a filter over metadata, such as ``year >= 1990 and genres = 'Drama'``.
        mode: ``semantic`` (the default), ``bm25`` or ``hybrid``: by meaning, by words, or both.
            In the latter two, ``"an exact phrase"`` is required in the document, and ``-word`` or
            ``-"a phrase"`` excludes it.
        fusion: how hybrid search fuses both rankings: ``zscores`` (the default) or ``rrf``.
        dense_weight: the weight of the semantic ranking in it, from 0 to 1; 0.5 by default.
        like: ids of documents that hits should resemble, or weights by id. Their vectors are added
            to the query's (Rocchio 1971); they are not hits themselves.
        unlike: ids of documents that hits should not resemble; each has the weight -0.5.
        per_document: the maximum number of passages per document; 1 by default.
        fold_duplicates: drop hits whose passage is a near-duplicate of a better hit's (cosine of
            at least 0.95); their ids are in `Hit.duplicates` of that hit.
        mmr: reorder the first 100 hits by maximal marginal relevance (Carbonell & Goldstein 1998);
            the weight of relevance, from 0 (diversity only) to 1 (relevance only).
        rerank: a cross-encoder that scores the passages of the first documents again.
        rerank_depth: how many documents it reads at most; 100 by default.
        rerank_budget: time limit in seconds. The best-ranked documents are read first, at least 8;
            those not read follow in their previous order, with their previous scores.
        explain: fill in `Hit.explanation` and `Hits.stages` (timings).
    """

    offset: int
    min_score: float | None
    where: str | None
    mode: SearchMode | str
    fusion: Fusion | str
    dense_weight: float
    like: Examples
    unlike: Examples
    per_document: int
    fold_duplicates: bool
    mmr: float | None
    rerank: Reranker | None
    rerank_depth: int
    rerank_budget: float | None
    explain: bool


@dataclass(frozen=True)
class Options:
    """The options of a search, which check themselves; see `SearchOptions`.

    Raises:
        ArgumentError: one of them cannot be used.
    """

    k: int = 10
    offset: int = 0
    min_score: float | None = None
    where: str | None = None
    mode: SearchMode | str = SearchMode.SEMANTIC
    fusion: Fusion | str = Fusion.ZSCORES
    dense_weight: float = 0.5
    like: Examples = ()
    unlike: Examples = ()
    per_document: int = 1
    fold_duplicates: bool = False
    mmr: float | None = None
    rerank: Reranker | None = None
    rerank_depth: int = RERANK_DEPTH
    rerank_budget: float | None = None
    explain: bool = False
    examples: Mapping[str, float] = field(init=False)  #: weights by id, of like and unlike

    def __post_init__(self) -> None:
        if self.where is not None:
            check_text("where", self.where)
        if self.rerank is not None and not callable(getattr(self.rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(self.rerank)}"
            )
        if self.min_score is not None and (
            isinstance(self.min_score, bool) or not isinstance(self.min_score, (int, float))
        ):
            raise ArgumentError(f"min_score must be a number, not {shown(self.min_score)}")
        for name, least in (("k", 1), ("offset", 0), ("per_document", 1), ("rerank_depth", 1)):
            self._set(name, check_whole_number(name, getattr(self, name), least))
        self._set("mode", check_choice("mode", SearchMode, self.mode))
        self._set("fusion", check_choice("fusion", Fusion, self.fusion))
        check_number("dense_weight", self.dense_weight, 0, 1)
        for name, most in (("mmr", 1), ("rerank_budget", math.inf)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 0, most)
        examples = {name: weight * UNLIKE_WEIGHT for name, weight in _weights(self.unlike).items()}
        examples |= _weights(self.like)
        if examples and self.mode is SearchMode.BM25:
            raise CombinationError(
                "like and unlike compare vectors: mode must be semantic or hybrid"
            )
        self._set("examples", examples)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _weights(examples: Examples) -> dict[str, float]:
    """Documents by id with their weights.

    Raises:
        ArgumentError: an id is no string, or a weight no number.
    """
    if isinstance(examples, Mapping):
        weights: dict[str, Any] = dict(examples)
    else:
        ids = [examples] if isinstance(examples, str) else check_texts("examples", examples)
        weights = dict.fromkeys(ids, 1.0)
    for name, weight in weights.items():
        check_text("the id of an example", name)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise ArgumentError(f"the weight of '{name}' must be a number, not {shown(weight)}")
    return weights
