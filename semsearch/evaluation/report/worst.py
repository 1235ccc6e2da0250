"""Selects the worst pairs and queries of a system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from semsearch.evaluation.datasets import RetrievalSet, ScoredPair
from semsearch.evaluation.report.labels import shortened
from semsearch.evaluation.statistics import Values
from semsearch.evaluation.trec import Run

WORST = 10
#: The number of documents shown per query, and their length.
SHOWN = 3
DOCUMENT_CHARACTERS = 120


class WorstPair(NamedTuple):
    """A pair whose rank by score differs greatly from its rank by gold score."""

    pair: ScoredPair
    score: float
    gold_percentile: float  #: of its rank: 0 for the least similar pair, 100 for the most similar
    score_percentile: float


class WorstQuery(NamedTuple):
    """A query with a low value of a measure."""

    query: str  #: its id
    value: float  #: of the measure, times 100
    first_relevant: int | None  #: the rank of the first relevant document; None if not found
    ranked: list[str]  #: ids and beginnings of the documents ranked first
    relevant: list[str]  #: and of relevant ones


def worst_pairs(pairs: Sequence[ScoredPair], scores: Values, count: int = WORST) -> list[WorstPair]:
    """The pairs whose rank by score is farthest from their rank by gold score, farthest first.

    Spearman's correlation falls with the square of this distance. Equal values share their mean
    rank.

    Args:
        pairs: two or more.
        scores: shape (pairs,).
        count: the maximum number.
    """
    from scipy.stats import rankdata

    gold = numpy.array([pair.gold for pair in pairs])
    wanted, rated = (100 * (rankdata(values) - 1) / (len(pairs) - 1) for values in (gold, scores))
    farthest = numpy.argsort(-numpy.abs(wanted - rated), kind="stable")[:count]
    return [
        WorstPair(pairs[row], float(scores[row]), float(wanted[row]), float(rated[row]))
        for row in farthest.tolist()
    ]


def worst_queries(
    retrieval: RetrievalSet, run: Run, values: Values, count: int = WORST
) -> list[WorstQuery]:
    """The queries with the lowest values.

    Among equal ones, those whose first relevant document is not found or ranked lowest come first.

    Args:
        retrieval: the set.
        run: the rankings of a system.
        values: of a measure, shape (queries,).
        count: the maximum number.
    """
    found = []
    for query, value in zip(retrieval.queries, values.tolist(), strict=True):
        relevant = [name for name, grade in retrieval.qrels[query].items() if grade > 0]
        ranked = list(run.get(query, {}))
        ranks = [ranked.index(name) + 1 for name in relevant if name in ranked]
        shown = _documents(retrieval, relevant)
        if len(relevant) > SHOWN:
            shown.append(f"and {len(relevant) - SHOWN:,} more")
        first = min(ranks, default=None)
        found.append(WorstQuery(query, value, first, _documents(retrieval, ranked), shown))
    found.sort(key=lambda one: (one.value, -(one.first_relevant or math.inf)))
    return found[:count]


def _documents(retrieval: RetrievalSet, names: Sequence[str]) -> list[str]:
    """Ids and beginnings of the first documents; some may be missing from the collection."""
    beginnings = (f"{name}: {retrieval.documents.get(name, '')}" for name in names[:SHOWN])
    return [shortened(text, DOCUMENT_CHARACTERS) for text in beginnings]
