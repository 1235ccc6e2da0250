"""Reranking: a cross-encoder scores query and passage together."""

from __future__ import annotations

import time

import numpy

from semsearch.arguments import shown
from semsearch.errors import ArgumentError
from semsearch.protocols import Reranker
from semsearch.records import Hits

#: Passages scored first, to measure the speed.
FIRST_BLOCK = 8


def reranked(hits: Hits, reranker: Reranker, depth: int, budget: float | None = None) -> Hits:
    """Sort the first hits by the scores of a cross-encoder; equal scores keep their order.

    Args:
        hits: best first; they are scored in this order.
        reranker: the cross-encoder.
        depth: the maximum number of hits to score. The others follow in their previous order.
        budget: time limit in seconds, by the speed measured so far. At least `FIRST_BLOCK` hits
            are scored.

    Raises:
        ArgumentError: the reranker does not return one number for each passage.
    """
    first = hits[:depth]
    scores: list[float] = []
    started = time.perf_counter()
    while len(scores) < len(first):
        taken = len(first) - len(scores)
        if budget is not None:
            spent = time.perf_counter() - started
            affordable = int((budget - spent) * len(scores) / spent) if scores else FIRST_BLOCK
            taken = min(taken, max(FIRST_BLOCK, len(scores)), affordable)
            if taken < 1:
                break
        scores += _scores(hits.query, first[len(scores) : len(scores) + taken], reranker)
    read = sorted(zip(scores, first, strict=False), key=lambda pair: -pair[0])
    found = [
        hit._replace(score=score, scores=hit.scores._replace(reranked=score)) for score, hit in read
    ]
    found += hits[len(scores) :]
    ranked = (hit._replace(rank=rank) for rank, hit in enumerate(found, start=1))
    return Hits(hits.query, ranked, reranked=len(scores))


def _scores(query: str, hits: Hits, reranker: Reranker) -> list[float]:
    found = numpy.asarray(reranker.score(query, [hit.text for hit in hits]))
    if found.shape != (len(hits),) or found.dtype.kind not in "fiu" or numpy.isnan(found).any():
        raise ArgumentError(
            f"the reranker must return {len(hits)} numbers, one per passage, not {shown(found)}"
        )
    scores: list[float] = found.tolist()
    return scores
