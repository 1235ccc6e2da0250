"""Where a system fails: the pairs and queries that are worth reading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from semsearch.correlations import Values
from semsearch.datasets import RetrievalSet, ScoredPair
from semsearch.evaluation.trec import Run

WORST = 10


class WorstPair(NamedTuple):
    """A pair that a system places elsewhere than people do."""

    pair: ScoredPair
    score: float
    gold_percentile: float  #: of its rank among the pairs: 0 the least similar, 100 the most
    score_percentile: float


class WorstQuery(NamedTuple):
    """A query that a system answers badly."""

    query: str  #: its id
    value: float  #: of the measure, times 100
    first_relevant: int | None  #: rank of the first relevant document; None where none is found


def worst_pairs(pairs: Sequence[ScoredPair], scores: Values, count: int = WORST) -> list[WorstPair]:
    """The pairs whose rank by score is farthest from that by gold, farthest first.

    Spearman's correlation falls with the square of this distance. Equal values share the mean of
    their ranks.

    Args:
        pairs: two or more.
        scores: shape (pairs,).
        count: how many at most.
    """
    from scipy.stats import rankdata

    gold = numpy.array([pair.gold for pair in pairs])
    wanted, rated = (100 * (rankdata(values) - 1) / (len(pairs) - 1) for values in (gold, scores))
    farthest = numpy.argsort(-numpy.abs(wanted - rated), kind="stable")[:count]
    return [
        WorstPair(pairs[place], float(scores[place]), float(wanted[place]), float(rated[place]))
        for place in farthest.tolist()
    ]


def worst_queries(
    retrieval: RetrievalSet, run: Run, values: Values, count: int = WORST
) -> list[WorstQuery]:
    """The queries of the lowest value; of equal ones first where what is relevant stands lowest.

    Args:
        retrieval: the set.
        run: a system's ranking.
        values: of a measure, shape (queries,).
        count: how many at most.
    """
    found = []
    for query, value in zip(retrieval.queries, values.tolist(), strict=True):
        judged = retrieval.qrels[query]
        ranks = enumerate(run.get(query, {}), start=1)
        first = next((rank for rank, name in ranks if judged.get(name, 0) > 0), None)
        found.append(WorstQuery(query, value, first))
    found.sort(key=lambda one: (one.value, -(one.first_relevant or math.inf)))
    return found[:count]
