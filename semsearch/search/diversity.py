"""Diversity of hits: near-duplicates dropped, maximal marginal relevance."""

from __future__ import annotations

import numpy

from semsearch.protocols import Matrix
from semsearch.records import Hit

#: Passages with at least this cosine are near-duplicates.
DUPLICATE_COSINE = 0.95


def without_duplicates(hits: list[Hit], vectors: Matrix) -> list[Hit]:
    """The hits without near-duplicates of better hits, which list the ids of those dropped.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).
    """
    kept: list[Hit] = []
    names: list[dict[str, None]] = []  # the ids of each kept hit and its duplicates, in order
    kept_vectors = numpy.empty_like(vectors)
    for hit, vector in zip(hits, vectors, strict=True):
        alike = numpy.flatnonzero(kept_vectors[: len(kept)] @ vector >= DUPLICATE_COSINE)
        if len(alike):
            names[alike[0]][hit.document_id] = None
        else:
            kept_vectors[len(kept)] = vector
            kept.append(hit)
            names.append({hit.document_id: None})
    return [
        hit._replace(duplicates=tuple(ids)[1:]) if len(ids) > 1 else hit
        for hit, ids in zip(kept, names, strict=True)
    ]


def maximal_marginal_relevance(
    hits: list[Hit], vectors: Matrix, relevance_weight: float
) -> list[Hit]:
    """The hits in the order of Carbonell & Goldstein (SIGIR 1998).

    Each step takes the hit with the largest difference between its weighted relevance and its
    weighted largest cosine with the hits taken before. Relevance is the score, scaled to 0 for the
    worst of these hits and 1 for the best.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).
        relevance_weight: the paper's lambda, from 0 to 1.
    """
    scores = numpy.array([hit.score for hit in hits])
    relevance = scores - scores.min(initial=numpy.inf)
    relevance /= relevance.max(initial=0) or 1
    cosines = vectors @ vectors.T
    nearest = numpy.zeros(len(hits))  # largest cosine with the hits taken so far
    is_open = numpy.ones(len(hits), bool)
    found = []
    for _ in hits:
        gain = relevance_weight * relevance - (1 - relevance_weight) * nearest
        gain = numpy.where(is_open, gain, -numpy.inf)
        place = int(gain.argmax())  # of equal gains, the better hit
        is_open[place] = False
        found.append(hits[place])
        nearest = numpy.maximum(nearest, cosines[place]) if len(found) > 1 else cosines[place]
    return found
