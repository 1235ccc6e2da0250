"""The recall of an index, measured against exact search."""

from __future__ import annotations

import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes.protocol import Ids, VectorIndex

#: How many of its own vectors an index is asked for, and for how many neighbours each.
QUERIES = 100
NEIGHBOURS = 10
#: Scores this near are equal; float32 adds up in any order.
ROUNDING = 1e-5
BLOCK_ROWS = 8192


def measured_recall(index: VectorIndex) -> float:
    """The share of the 10 nearest neighbours that a search finds, of up to 100 of its vectors.

    A neighbour counts as found when its score is no worse than the tenth best of exact search, so
    that equal vectors may stand for each other.

    Returns:
        Between 0 and 1; 1 for an empty index.
    """
    if not len(index):
        return 1.0
    places = numpy.linspace(0, len(index) - 1, min(QUERIES, len(index))).astype(numpy.int64)
    queries = index.vectors(index.ids[places])
    n = min(NEIGHBOURS, len(index))
    worst = _exact_scores(index, queries, n)[:, -1]
    _, found = index.search(queries, n)
    hits = 0
    for query, ids, least in zip(queries, found, worst, strict=True):
        scores = index.vectors(ids[ids >= 0]) @ query
        hits += int((scores >= least - ROUNDING).sum())
    return hits / (n * len(queries))


def _exact_scores(index: VectorIndex, queries: Matrix, n: int) -> Matrix:
    """The `n` best scores of each query, best first, shape (len(queries), n)."""
    best: Matrix = numpy.empty((len(queries), 0), numpy.float32)
    ids: Ids = index.ids
    for start in range(0, len(ids), BLOCK_ROWS):
        block = queries @ index.vectors(ids[start : start + BLOCK_ROWS]).T
        both = numpy.concatenate([best, block], axis=1)
        kept = min(n, both.shape[1])
        best = -numpy.sort(-numpy.partition(both, -kept, axis=1)[:, -kept:], axis=1)
    return best
