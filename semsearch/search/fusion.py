"""Fusion of several rankings of the same items into one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.storage.interface import ScoredPassage

#: Items with their scores, best first.
Ranking: TypeAlias = Sequence[tuple[int, float]]

#: The difference between the scores of items that are ordered by their ranks.
STEP = 1e-9
#: The largest relative difference between scores that are equal, computed in float32.
ROUNDING = 1e-6


def zscore_fusion(rankings: Sequence[Ranking], weights: Sequence[float]) -> dict[int, float]:
    """Items with the weighted sum of their standard scores (z-scores) in all rankings.

    A ranking that is shorter than the longest one is padded with scores of 0 for the items that it
    did not find. An item that a ranking does not contain gets its lowest standard score. So the
    ranking with the clearer differences has more influence.

    Args:
        rankings: each is standardised by the mean and standard deviation of all its scores.
        weights: the weight of each ranking.
    """
    length = max(map(len, rankings))
    if not length:
        return {}
    length = max(length, 2)  # a single hit stands out against a score of 0
    scores: dict[int, float] = defaultdict(float)
    items = {item for ranking in rankings for item, _ in ranking}
    for ranking, weight in zip(rankings, weights, strict=True):
        values = numpy.zeros(length)
        values[: len(ranking)] = [score for _, score in ranking]
        standard = standard_scores(values).tolist()
        found = dict(zip((item for item, _ in ranking), standard, strict=False))
        for item in items:
            scores[item] += weight * found.get(item, min(standard))
    return scores


def standard_scores(values: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The standard scores (z-scores); 0 if all values are equal, but for rounding."""
    if numpy.ptp(values) <= ROUNDING * numpy.abs(values).max():  # the deviation may not be 0
        return numpy.zeros_like(values)
    found: NDArray[numpy.float64] = (values - values.mean()) / values.std()
    return found


def fused_scores(
    sides: Sequence[Mapping[int, ScoredPassage]], dense_weight: float, depth: int
) -> list[tuple[int, float, list[int]]]:
    """Items with their fused scores and the numbers of the rankings that decide them, best first.

    The first `depth` items of both rankings are fused on their own. The others follow by the better
    of their ranks, each divided by the weight of its ranking, with lower scores. So pages of
    results do not depend on how many hits are requested.
    """
    weights = [dense_weight, 1 - dense_weight]
    first = [dict(islice(side.items(), depth)) for side in sides]
    rankings = [[(item, one.score) for item, one in side.items()] for side in first]
    passages = {item: one.passage_id for side in reversed(first) for item, one in side.items()}
    fused = [
        (item, score, [number for number, side in enumerate(first) if item in side])
        for item, score in zscore_fusion(rankings, weights).items()
    ]
    fused.sort(key=lambda scored: (-scored[1], passages[scored[0]]))
    others: dict[int, tuple[float, int]] = {}  # the better rank, and the number of the ranking
    for number, (side, weight) in enumerate(zip(sides, weights, strict=True)):
        for rank, item in enumerate(islice(side, depth, None), start=depth + 1):
            if item not in passages:
                weighted = rank / weight if weight else math.inf
                others[item] = min((weighted, number), others.get(item, (math.inf, number)))
    for place, item in enumerate(sorted(others, key=others.__getitem__), start=1):
        fused.append((item, fused[len(passages) - 1][1] - place * STEP, [others[item][1]]))
    return fused
