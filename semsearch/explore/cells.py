"""Cells around centroids: which texts of a large collection to compare.

As in an inverted file index, each row is compared with the rows of its nearest cells. The number of
cells is chosen on a sample, and the recall is measured on another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

MAX_PROBES = 64  # cells searched per row
POINTS_PER_CELL = 64  # for training; FAISS requires at least 39
TRAINING_ROUNDS = 10
#: Rows whose neighbours are searched exactly: half to choose the cells, half to measure recall.
SAMPLE_ROWS = 512
SAMPLE_NEIGHBOURS = 10
#: With fewer neighbours above the score in half a sample, all neighbours count.
SAMPLE_MIN_PAIRS = 50
WANTED_RECALL = 0.98
ASSIGNED_AT_ONCE = 1 << 14
SEED = 0


def nearest_cells(
    vectors: Matrix, groups: NDArray[Any] | None, min_score: float, notify: Callable[[str], None]
) -> tuple[NDArray[Any], int]:
    """Train cells, and choose how many to probe for the wanted recall.

    Returns:
        The nearest cells of each row, beginning with its own, and the number of cells.
    """
    import faiss

    n, dimension = vectors.shape
    random = numpy.random.default_rng(SEED)
    count = max(1, min(round(2 * math.sqrt(n)), n // POINTS_PER_CELL))
    chosen = random.choice(n, min(n, count * POINTS_PER_CELL), replace=False)
    means = faiss.Kmeans(dimension, count, niter=TRAINING_ROUNDS, spherical=True, seed=SEED)
    means.train(vectors[chosen])
    most = min(MAX_PROBES, count)
    sample = random.choice(n, min(n, SAMPLE_ROWS), replace=False)
    tuning, test = (
        _probes_needed(vectors, groups, half, min_score, means.index, most)
        for half in (sample[::2], sample[1::2])
    )
    wanted = math.ceil(WANTED_RECALL * len(tuning))
    probes = min(most, int(numpy.sort(tuning)[wanted - 1]) if wanted else 1)
    recall = float((test <= probes).mean()) if len(test) else 1.0
    notify(
        f"{n:,} texts are too many to compare all pairs; each is compared with those of {probes} "
        f"of {count:,} cells, with a recall of {recall:.1%} (measured on {len(test):,} near pairs)"
    )
    table = numpy.empty((n, probes), numpy.int32)
    for start in range(0, n, ASSIGNED_AT_ONCE):
        rows = slice(start, start + ASSIGNED_AT_ONCE)
        table[rows] = means.index.search(vectors[rows], probes)[1]
    return table, count


def _probes_needed(
    vectors: Matrix,
    groups: NDArray[Any] | None,
    sample: NDArray[Any],
    min_score: float,
    cells: Any,
    most: int,
) -> NDArray[Any]:
    """The number of cells to probe to find each neighbour of the sample.

    A pair is found from either side. Neighbours outside `most` cells count as `most` + 1.
    """
    from sklearn.neighbors import NearestNeighbors

    count = min(SAMPLE_NEIGHBOURS + 1, len(vectors))  # with the row itself
    exact = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(vectors)
    distances, neighbours = exact.kneighbors(vectors[sample])
    scores = 1 - distances**2 / 2  # of unit vectors
    allowed = neighbours != sample[:, None]
    if groups is not None:
        allowed &= groups[neighbours] != groups[sample][:, None]
    counted = allowed & (scores >= min_score)
    if counted.sum() < SAMPLE_MIN_PAIRS:
        counted = allowed
    row, column = numpy.nonzero(counted)
    sides = sample[row], neighbours[row, column]
    left_cells, right_cells = (cells.search(vectors[side], most)[1] for side in sides)

    def rank(searched: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        found = searched == own[:, :1]
        return numpy.where(found.any(axis=1), found.argmax(axis=1) + 1, most + 1)

    needed: NDArray[Any] = numpy.minimum(
        rank(left_cells, right_cells), rank(right_cells, left_cells)
    )
    return needed
