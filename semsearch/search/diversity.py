"""Diversity of hits: near-duplicates dropped, maximal marginal relevance."""

from __future__ import annotations

import numpy

from semsearch.protocols import Matrix
from semsearch.records import Hit

#: From this cosine on, two passages are duplicates.
DUPLICATE_COSINE = 0.95

#: How far apart equal gains can be, by the order in which float32 adds up.
ROUNDING = 2e-6


def without_duplicates(hits: list[Hit], vectors: Matrix) -> tuple[list[Hit], Matrix]:
    """The hits without near-duplicates of better ones, which list the ids of those dropped.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).

    Returns:
        Those hits and their vectors.
    """
    kept: list[Hit] = []
    kept_vectors = numpy.empty_like(vectors)
    for hit, vector in zip(hits, vectors, strict=True):
        alike = numpy.flatnonzero(kept_vectors[: len(kept)] @ vector >= DUPLICATE_COSINE)
        if len(alike):
            better = kept[alike[0]]
            kept[alike[0]] = better._replace(duplicates=(*better.duplicates, hit.document_id))
        else:
            kept_vectors[len(kept)] = vector
            kept.append(hit)
    return kept, kept_vectors[: len(kept)]


def maximal_marginal_relevance(
    hits: list[Hit], vectors: Matrix, relevance_weight: float
) -> list[Hit]:
    """The hits in the order of Carbonell & Goldstein (SIGIR 1998).

    The next one is that with the greatest difference between its relevance, weighted, and its
    greatest cosine with those before it, weighted by the rest. Relevance is the score, from 0 for
    the least of these hits to 1 for the best.

    Args:
        hits: best first.
        vectors: the unit vectors of their passages, shape (len(hits), dimension).
        relevance_weight: the paper's lambda, from 0 to 1.
    """
    scores = numpy.array([hit.score for hit in hits])
    relevance = (scores - scores.min(initial=numpy.inf)) if len(hits) else scores
    if relevance.any():
        relevance /= relevance.max()
    cosines = vectors @ vectors.T
    nearest = numpy.zeros(len(hits))  # cosine with what was chosen: nothing, at first
    is_open = numpy.ones(len(hits), bool)
    found = []
    for _ in hits:
        gain = relevance_weight * relevance - (1 - relevance_weight) * nearest
        gain = numpy.where(is_open, gain, -numpy.inf)
        place = int((gain >= gain.max() - ROUNDING).argmax())  # of equal ones, the better hit
        is_open[place] = False
        found.append(hits[place])
        nearest = numpy.maximum(nearest, cosines[place]) if len(found) > 1 else cosines[place]
    return found
