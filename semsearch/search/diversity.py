"""Hits that differ from each other: duplicates folded, maximal marginal relevance."""

from __future__ import annotations

import numpy

from semsearch.protocols import Matrix
from semsearch.records import Hit

#: From this cosine on, two passages say the same.
DUPLICATE_COSINE = 0.95


def diverse(
    hits: list[Hit], vectors: Matrix, count: int, fold_duplicates: bool, mmr: float | None
) -> list[Hit]:
    """The first hits, of those that differ from each other.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).
        count: how many are wanted.
        fold_duplicates: whether to leave out those that say the same as a better one.
        mmr: the weight of relevance, or None to leave them in their order.
    """
    if fold_duplicates:
        hits, vectors = without_duplicates(hits, vectors)
    if mmr is not None:
        hits = maximal_marginal_relevance(hits, vectors, mmr, count)
    return hits[:count]


def without_duplicates(hits: list[Hit], vectors: Matrix) -> tuple[list[Hit], Matrix]:
    """The hits that say something else than each better one, which names those left out.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).

    Returns:
        Those hits and their vectors.
    """
    alike = vectors @ vectors.T >= DUPLICATE_COSINE
    kept: list[int] = []
    folded: dict[int, list[str]] = {}
    for place, hit in enumerate(hits):
        first = next((other for other in kept if alike[other, place]), None)
        if first is None:
            kept.append(place)
            folded[place] = []
        else:
            folded[first].append(hit.document_id)
    found = [hits[place]._replace(duplicates=tuple(folded[place])) for place in kept]
    return found, vectors[kept]


def maximal_marginal_relevance(
    hits: list[Hit], vectors: Matrix, relevance_weight: float, count: int
) -> list[Hit]:
    """The hits in the order of Carbonell & Goldstein (SIGIR 1998).

    The next one is that with the greatest difference between its relevance, weighted, and its
    greatest cosine with those before it, weighted by the rest. Relevance is the score, from 0 for
    the least of these hits to 1 for the best.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).
        relevance_weight: the paper's lambda, from 0 to 1.
        count: how many are wanted.
    """
    scores = numpy.array([hit.score for hit in hits])
    relevance = (scores - scores.min(initial=numpy.inf)) if len(hits) else scores
    if relevance.any():
        relevance /= relevance.max()
    cosines = vectors @ vectors.T
    nearest = numpy.zeros(len(hits))  # cosine with what was chosen: nothing, at first
    is_open = numpy.ones(len(hits), bool)
    found = []
    for _ in range(min(count, len(hits))):
        gain = relevance_weight * relevance - (1 - relevance_weight) * nearest
        place = int(numpy.where(is_open, gain, -numpy.inf).argmax())
        is_open[place] = False
        found.append(hits[place])
        nearest = numpy.maximum(nearest, cosines[place]) if len(found) > 1 else cosines[place]
    return found
