"""Reranking: a cross-encoder scores query and passage together."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy

from semsearch.errors import ArgumentError, shown
from semsearch.protocols import Reranker
from semsearch.records import Hit, Hits
from semsearch.search.fusion import standard_scores

#: Passages scored first, to measure the speed.
FIRST_BLOCK = 8


def reranked(
    hits: Hits, query: str, reranker: Reranker, depth: int, budget: float | None = None
) -> Hits:
    """Sort the first hits by the scores of a cross-encoder; equal scores keep their order.

    Some cross-encoders have a `first_stage_weight`: their scores are combined with the first's.

    Args:
        hits: best first; they are scored in this order.
        query: the text that they are scored for, without operators.
        reranker: the cross-encoder.
        depth: the maximum number of hits to score. The others follow in their previous order.
        budget: time limit in seconds, kept by the speed measured so far. At least `FIRST_BLOCK`
            hits are scored.

    Raises:
        ArgumentError: the reranker does not return one number for each passage.
    """
    first = hits[:depth]
    scores: list[float] = []
    started = time.perf_counter()
    while len(scores) < len(first):
        taken = len(first)
        if budget is not None:
            spent = time.perf_counter() - started
            affordable = (budget - spent) * len(scores) / spent if scores else FIRST_BLOCK
            taken = int(min(taken, max(FIRST_BLOCK, len(scores)), affordable))
            if taken < 1:
                break
        scores += _scores(query, first[len(scores) : len(scores) + taken], reranker)
    read = first[: len(scores)]
    weight = getattr(reranker, "first_stage_weight", 0.0)
    final = combined([hit.score for hit in read], scores, weight)
    found = [
        read[place]._replace(
            score=final[place], scores=read[place].scores._replace(reranked=scores[place])
        )
        for place in sorted(range(len(scores)), key=lambda place: -final[place])
    ]
    return Hits(hits.query, found + hits[len(scores) :], reranked=len(scores))


def combined(first: Sequence[float], second: Sequence[float], weight: float) -> list[float]:
    """The scores of two stages as one: the weighted mean of their z-scores.

    Args:
        first: those of the first stage.
        second: those of the reranker for the same hits.
        weight: of the first stage; with 0, the reranker's scores are returned as they are.
    """
    if not weight or not second:
        return list(second)
    one, other = (standard_scores(numpy.asarray(scores, float)) for scores in (first, second))
    mean: list[float] = (weight * one + (1 - weight) * other).tolist()
    return mean


def _scores(query: str, hits: Sequence[Hit], reranker: Reranker) -> list[float]:
    found = numpy.asarray(reranker.score(query, [hit.text for hit in hits]), float)
    if found.shape != (len(hits),) or numpy.isnan(found).any():
        raise ArgumentError(
            f"the reranker must return {len(hits)} numbers, one per passage, not {shown(found)}"
        )
    scores: list[float] = found.tolist()
    return scores
