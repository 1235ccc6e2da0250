"""Spherical k-means: each text belongs to the centroid with the highest cosine.

Dhillon & Modha, Concept decompositions for large sparse text data (2001). The initial centroids are
from greedy k-means++ (Arthur & Vassilvitskii 2007); the best of several runs is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from semsearch.pairwise import Rows
from semsearch.protocols import Matrix

RESTARTS = 8
ROUNDS = 20
#: Restarts use a sample of this many vectors per centroid; only the best continues with all.
SAMPLE_PER_CENTROID = 100
#: The number of candidates from which k-means++ chooses the next centroid.
CANDIDATES = 16
MAX_DEFAULT_GROUPS = 50


def default_groups(n: int) -> int:
    """√(n/2), a rule of thumb (Mardia et al. 1979), but at most MAX_DEFAULT_GROUPS."""
    return max(1, min(round(math.sqrt(n / 2)), MAX_DEFAULT_GROUPS))


def nearest_centroids(
    vectors: Matrix, groups: int, seed: int, on_progress: Callable[[int, int], None]
) -> list[Rows]:
    """Rows grouped by their nearest centroid; fewer groups if vectors are identical.

    Args:
        vectors: unit vectors, shape (n, dimension), at least one.
        groups: the number of groups, at most n.
        seed: the same seed returns the same groups.
        on_progress: called after each run with the number of comparisons done and their total.
    """
    n = len(vectors)
    vectors = numpy.ascontiguousarray(vectors, numpy.float32)
    random = numpy.random.default_rng(seed)
    sampled = numpy.sort(random.choice(n, min(n, groups * SAMPLE_PER_CENTROID), replace=False))
    sample = vectors[sampled]
    done, total = 0, ROUNDS * groups * (RESTARTS * len(sample) + n)
    best, centroids = -math.inf, sample[:groups]
    for _ in range(RESTARTS):
        means = _trained(sample, _first_centroids(sample, groups, random))
        scores, _ = means.assign(sample)
        score = float(scores.sum(dtype=numpy.float64))
        if score > best:
            best, centroids = score, means.centroids
        done += ROUNDS * groups * len(sample)
        on_progress(done, total)
    _, nearest = _trained(vectors, centroids).assign(vectors)
    on_progress(total, total)
    order = numpy.argsort(nearest, kind="stable")
    return numpy.split(order, numpy.flatnonzero(numpy.diff(nearest[order])) + 1)


def _trained(vectors: Matrix, centroids: Matrix) -> Any:
    """Run FAISS's k-means from these centroids."""
    import faiss

    groups, dimension = centroids.shape
    means = faiss.Kmeans(
        dimension,
        groups,
        niter=ROUNDS,
        spherical=True,
        seed=1,  # for splitting the centroids of empty clusters
        min_points_per_centroid=1,  # avoids a warning about too few vectors
        max_points_per_centroid=len(vectors),
    )
    means.train(vectors, init_centroids=centroids)
    return means


def _first_centroids(vectors: Matrix, groups: int, random: numpy.random.Generator) -> Matrix:
    """Greedy k-means++: each centroid is the best of candidates drawn by squared distance."""
    chosen = [int(random.integers(len(vectors)))]
    # Half the squared distance of unit vectors is 1 - cosine.
    distances = numpy.maximum(1 - vectors @ vectors[chosen[0]], 0)
    while len(chosen) < groups:
        sums = numpy.cumsum(distances, dtype=numpy.float64)
        candidates = numpy.searchsorted(sums, random.random(CANDIDATES) * sums[-1])
        candidates = numpy.minimum(candidates, len(vectors) - 1)
        remaining = numpy.maximum(1 - vectors[candidates] @ vectors.T, 0)
        numpy.minimum(remaining, distances, out=remaining)
        best = int(remaining.sum(axis=1, dtype=numpy.float64).argmin())
        chosen.append(int(candidates[best]))
        distances = remaining[best]
    return vectors[chosen]
