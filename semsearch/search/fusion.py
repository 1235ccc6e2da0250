"""Two rankings of the same things into one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy

from semsearch.search.queries import Fusion, Options
from semsearch.stores.protocol import Candidate

#: Items with their scores, best first.
Ranking: TypeAlias = Sequence[tuple[int, float]]


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking], weights: Sequence[float] | None = None, constant: int = 60
) -> list[tuple[int, float]]:
    """Items with the sum of their reciprocal ranks (Cormack, Clarke & Büttcher, SIGIR 2009).

    Args:
        rankings: an item that a ranking lacks adds nothing there.
        weights: how much each counts; all the same by default.
        constant: how much the first ranks stand out; the paper's 60.
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, (item, _) in enumerate(ranking, start=1):
            scores[item] += weight / (constant + rank)
    return _ordered(scores)


def zscore_fusion(
    rankings: Sequence[Ranking], weights: Sequence[float] | None = None
) -> list[tuple[int, float]]:
    """Items with the weighted mean of their standard scores (z-scores) in all rankings.

    A ranking that is shorter than the longest one is filled up with scores of 0: it did not find
    those items. An item that a ranking lacks has its least standard score. So a ranking in which
    few items stand out decides where the other one hardly differs.

    Args:
        rankings: mean and standard deviation are those of all scores of a ranking.
        weights: how much each counts; all the same by default.
    """
    length = max(map(len, rankings), default=0)
    if not length:
        return []
    scores: dict[int, float] = defaultdict(float)
    weights = weights or [1 / len(rankings)] * len(rankings)
    items = {item for ranking in rankings for item, _ in ranking}
    for ranking, weight in zip(rankings, weights, strict=True):
        values = numpy.zeros(length)
        values[: len(ranking)] = [score for _, score in ranking]
        deviation = values.std()
        if deviation == 0:  # it tells nothing apart
            deviation = 1
        standard = ((values - values.mean()) / deviation).tolist()
        found = dict(zip((item for item, _ in ranking), standard, strict=False))
        least = min(standard)
        for item in items:
            scores[item] += weight * found.get(item, least)
    return _ordered(scores)


def fused_scores(
    sides: Sequence[Mapping[int, Candidate]], options: Options, depth: int
) -> list[tuple[int, float]]:
    """Items with their scores, best first.

    The first of both sides are fused by themselves, so that the first pages are the same however
    many hits are asked for. The others follow, with lower scores.
    """
    fuse = zscore_fusion if options.fusion is Fusion.ZSCORES else reciprocal_rank_fusion
    weights = [options.dense_weight, 1 - options.dense_weight]
    rankings = [[(item, one.score) for item, one in side.items()] for side in sides]
    chunks = {item: one.chunk_id for side in reversed(sides) for item, one in side.items()}
    scores = dict(fuse([ranking[:depth] for ranking in rankings], weights))
    if len(scores) < len(chunks):
        others = [scored for scored in fuse(rankings, weights) if scored[0] not in scores]
        below = math.nextafter(min(scores.values()), -math.inf)
        excess = max(0.0, others[0][1] - below)
        scores |= {item: min(score - excess, below) for item, score in others}
    return sorted(scores.items(), key=lambda scored: (-scored[1], chunks[scored[0]]))


def _ordered(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
