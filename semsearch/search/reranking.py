"""Cross-encoders: the first hits by what a model makes of query and passage together."""

from __future__ import annotations

import time

import numpy

from semsearch.arguments import shown
from semsearch.errors import ArgumentError
from semsearch.protocols import Reranker
from semsearch.records import Hits

#: How many passages are read at first, to see how long it takes.
FIRST_BLOCK = 8


def reranked(hits: Hits, reranker: Reranker, depth: int, budget: float | None = None) -> Hits:
    """The first hits by a cross-encoder's scores; of equal ones, the one that stood first.

    Args:
        hits: best first; so they are read.
        reranker: the cross-encoder.
        depth: how many it reads at most. Those that it has not read follow as they were.
        budget: how many seconds it may take, as far as its speed can be foretold. It reads at
            least `FIRST_BLOCK`.

    Raises:
        ArgumentError: the reranker returns something else than a number for each passage.
    """
    first = hits[:depth]
    scores: list[float] = []
    started = time.perf_counter()
    while len(scores) < len(first):
        taken = len(first) - len(scores)
        if budget is not None:
            spent = time.perf_counter() - started
            foretold = int((budget - spent) * len(scores) / spent) if scores else FIRST_BLOCK
            taken = min(taken, max(FIRST_BLOCK, len(scores)), foretold)
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
            f"the reranker must return {len(hits)} numbers, one a passage, not {shown(found)}"
        )
    scores: list[float] = found.tolist()
    return scores
