"""The options of a search, validated."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict

from semsearch.errors import (
    ArgumentError,
    check_items,
    check_number,
    check_text,
    check_texts,
    shown,
)
from semsearch.protocols import Reranker
from semsearch.records import SearchMode, Where

#: The id of a document, or several ids.
Examples: TypeAlias = str | Iterable[str]

#: The weight of the semantic ranking in fusion by default.
DENSE_WEIGHT = 0.5

#: How many documents a cross-encoder reads by default.
RERANK_DEPTH = 100

#: The weight of `unlike` documents in a query; texts and `like` documents have 1.
UNLIKE_WEIGHT = -0.5


class SearchOptions(TypedDict, total=False):
    """Options of `search` and `search_many`, of an index. All are optional.

    Attributes:
        offset: the number of best hits to skip, for pages after the first.
        min_score: drop hits with a lower score; with `rerank`, also those that it did not read.
        where: a filter over metadata, such as ``year >= 1990 and genres = 'Drama'``, or a dict:
            ``{"year": 1990, "genres": ["Drama", "Crime"]}`` requires these values, of a list one.
        mode: ``semantic`` (the default), ``bm25`` or ``hybrid``: by meaning, by words, or both.
            In the latter two, ``"an exact phrase"`` ranks passages that contain it above others by
            BM25, and ``-word`` or ``-"a phrase"`` after a blank excludes documents with such a
            passage.
        require: a phrase, or several, that some passage of the document must contain, as BM25 reads
            words.
        dense_weight: the weight of the semantic ranking in hybrid search, from 0 to 1; 0.5 by
            default. The standard scores of both rankings are added.
        like: ids of documents that hits should resemble. Their vectors are added to the query's
            (Rocchio 1971); they are not hits themselves.
        unlike: ids of documents that hits should not resemble; each has the weight -0.5.
        per_document: the maximum number of passages per document; 1 by default.
        collapse_duplicates: drop hits whose passage is a near-duplicate of a better hit's (cosine
            of at least 0.95), before reranking; their ids are in `Hit.duplicates` of that hit.
        mmr: reorder the first 100 hits by maximal marginal relevance (Carbonell & Goldstein 1998);
            the weight of relevance, from 0 (diversity only) to 1 (relevance only).
        rerank: a cross-encoder that scores the passages of the first documents again.
        rerank_depth: the maximum number of documents that it reads; 100 by default.
        rerank_budget: time limit in seconds. The best-ranked documents are read first, at least 8;
            those not read follow in their previous order, with their previous scores.
        explain: fill in `Hit.explanation` and `Hits.stages` (timings).
    """

    offset: int
    min_score: float | None
    where: Where | None
    mode: SearchMode | str
    require: str | Sequence[str]
    dense_weight: float
    like: Examples
    unlike: Examples
    per_document: int
    collapse_duplicates: bool
    mmr: float | None
    rerank: Reranker | None
    rerank_depth: int
    rerank_budget: float | None
    explain: bool


@dataclass(frozen=True)
class Options:
    """The validated options of a search; see `SearchOptions`.

    Raises:
        ArgumentError: an option has an invalid type or value.
    """

    k: int
    offset: int = 0
    min_score: float | None = None
    where: Where | None = None
    mode: SearchMode | str = SearchMode.SEMANTIC
    require: str | Sequence[str] = ()
    dense_weight: float = DENSE_WEIGHT
    like: Examples = ()
    unlike: Examples = ()
    per_document: int = 1
    collapse_duplicates: bool = False
    mmr: float | None = None
    rerank: Reranker | None = None
    rerank_depth: int = RERANK_DEPTH
    rerank_budget: float | None = None
    explain: bool = False
    examples: Mapping[str, float] = field(init=False)  #: weights of `like` and `unlike`, by id

    def __post_init__(self) -> None:
        if self.where is not None and not isinstance(self.where, Mapping):
            check_text("where", self.where)
        if self.rerank is not None and not callable(getattr(self.rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(self.rerank)}"
            )
        if self.min_score is not None:
            self._set("min_score", check_number("min_score", self.min_score))
        for name, least in (("k", 1), ("offset", 0), ("per_document", 1), ("rerank_depth", 1)):
            self._set(name, check_whole_number(name, getattr(self, name), least))
        self._set("mode", SearchMode(self.mode))
        required = [self.require] if isinstance(self.require, str) else self.require
        listed = check_items("require", required, "phrases")
        self._set("require", tuple(check_readable("the required phrase", one) for one in listed))
        self._set("dense_weight", check_number("dense_weight", self.dense_weight, 0, 1))
        for name, most in (("mmr", 1), ("rerank_budget", math.inf)):
            value = getattr(self, name)
            if value is not None:
                self._set(name, check_number(name, value, 0, most))
        like, unlike = _ids(self.like), _ids(self.unlike)
        if both := set(like).intersection(unlike):
            raise ArgumentError(f"document '{min(both)}' is in both like and unlike")
        weights = dict.fromkeys(like, 1.0) | dict.fromkeys(unlike, UNLIKE_WEIGHT)
        self._set("examples", weights)
        if self.examples and self.mode is SearchMode.BM25:
            raise ArgumentError("like and unlike compare vectors: mode must be semantic or hybrid")
        if self.dense_weight != DENSE_WEIGHT and self.mode is not SearchMode.HYBRID:
            raise ArgumentError("dense_weight needs mode 'hybrid'")
        is_limited = self.rerank_depth != RERANK_DEPTH or self.rerank_budget is not None
        if is_limited and self.rerank is None:
            raise ArgumentError("rerank_depth and rerank_budget need rerank")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def check_whole_number(name: str, value: Any, least: int) -> int:
    """An integer (Python's or NumPy's) of at least `least`, or an `ArgumentError`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, not {shown(value)}") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, not {number}")
    return number


def check_readable(name: str, value: Any) -> str:
    """A string that is not blank and can be encoded, or an `ArgumentError`."""
    text = check_text(name, value)
    if not text.strip():
        raise ArgumentError(f"{name} is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ArgumentError(f"{name} contains a byte that is not UTF-8, or an unpaired surrogate")
    return text


def _ids(examples: Examples) -> list[str]:
    """The ids of documents, checked."""
    return [examples] if isinstance(examples, str) else check_texts("examples", examples)
