"""What can be asked of a search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypedDict

from semsearch.arguments import (
    check_choice,
    check_number,
    check_text,
    check_texts,
    check_whole_number,
    shown,
)
from semsearch.errors import ArgumentError
from semsearch.protocols import Reranker
from semsearch.records import SearchMode

#: Ids of documents, or one, or weights by id.
Examples: TypeAlias = str | Iterable[str] | Mapping[str, float]

#: How many documents a cross-encoder reads again.
RERANK_DEPTH = 100

#: What a document that repels weighs in a query, beside 1 for a text or one that attracts.
UNLIKE_WEIGHT = -0.5


class Fusion(Enum):
    """How hybrid search makes one ranking of two; see `semsearch.search.fusion`."""

    ZSCORES = "zscores"
    RRF = "rrf"


class SearchOptions(TypedDict, total=False):
    """What `search` and `search_many` take, of an index as of a retriever. All can be left out.

    Attributes:
        offset: how many of the best hits to leave out, for the pages after the first.
        min_score: leave out hits with a lower score.
        where: a filter over metadata, such as ``year >= 1990 and genres = 'Drama'``.
        mode: ``semantic`` (the default), ``bm25`` or ``hybrid``: by meaning, by words, or both.
            The two that read words understand ``"an exact phrase"``, which a hit's document must
            have, and ``-word`` or ``-"a phrase"``, which it must not have.
        fusion: how hybrid search makes one ranking of two: ``zscores`` (the default) or ``rrf``.
        dense_weight: how much the side of the vectors counts in it, from 0 to 1; 0.5 by default.
        like: ids of documents that the hits should resemble, or weights by id. They are added to
            the query's vector (Rocchio 1971), and are no hits themselves.
        unlike: ids of documents that the hits should not resemble; each weighs -0.5.
        per_document: how many passages of a document may be hits; 1 by default.
        fold_duplicates: leave out a hit whose passage says the same as that of a better one
            (cosine of at least 0.95); that one names its document in `Hit.duplicates`.
        mmr: from 0 to 1: order hits by maximal marginal relevance (Carbonell & Goldstein 1998),
            where 1 is relevance alone and 0 is difference from the hits before alone.
        rerank: a cross-encoder, which reads the passages of the first documents again; the score
            of those is then its.
        rerank_depth: how many it reads at most; 100 by default.
        rerank_budget: how many seconds it may take. It reads the most promising ones first; those
            that it has not read follow the others as they were.
        explain: keep in `Hit.explanation` how each hit came about, and in `Hits.stages` how long
            each stage took.
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


class Options(NamedTuple):
    """The options of a search, checked."""

    k: int
    offset: int
    min_score: float | None
    where: str | None
    mode: SearchMode
    fusion: Fusion
    dense_weight: float
    examples: dict[str, float]  #: ids of documents with their weights
    per_document: int
    fold_duplicates: bool
    mmr: float | None
    rerank: Reranker | None
    rerank_depth: int
    rerank_budget: float | None
    explain: bool

    @classmethod
    def checked(
        cls,
        k: int = 10,
        *,
        offset: int = 0,
        min_score: float | None = None,
        where: str | None = None,
        mode: SearchMode | str = SearchMode.SEMANTIC,
        fusion: Fusion | str = Fusion.ZSCORES,
        dense_weight: float = 0.5,
        like: Examples = (),
        unlike: Examples = (),
        per_document: int = 1,
        fold_duplicates: bool = False,
        mmr: float | None = None,
        rerank: Reranker | None = None,
        rerank_depth: int = RERANK_DEPTH,
        rerank_budget: float | None = None,
        explain: bool = False,
    ) -> Options:
        """The options, if they can be used; see `SearchOptions`.

        Raises:
            ArgumentError: one of them cannot.
        """
        if where is not None:
            check_text("where", where)
        if rerank is not None and not callable(getattr(rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(rerank)}"
            )
        if min_score is not None and (
            isinstance(min_score, bool) or not isinstance(min_score, (int, float))
        ):
            raise ArgumentError(f"min_score must be a number, not {shown(min_score)}")
        checked_mode = check_choice("mode", SearchMode, mode)
        examples = {name: weight * UNLIKE_WEIGHT for name, weight in _weights(unlike).items()}
        examples |= _weights(like)
        if examples and checked_mode is SearchMode.BM25:
            raise ArgumentError("like and unlike compare vectors: mode must be semantic or hybrid")
        return cls(
            check_whole_number("k", k, 1),
            check_whole_number("offset", offset, 0),
            min_score,
            where,
            checked_mode,
            check_choice("fusion", Fusion, fusion),
            check_number("dense_weight", dense_weight, 0, 1),
            examples,
            check_whole_number("per_document", per_document, 1),
            bool(fold_duplicates),
            None if mmr is None else check_number("mmr", mmr, 0, 1),
            rerank,
            check_whole_number("rerank_depth", rerank_depth, 1),
            None
            if rerank_budget is None
            else check_number("rerank_budget", rerank_budget, 0, math.inf),
            bool(explain),
        )


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
