"""Spherical k-means: each text belongs to the centroid with which its cosine is highest.

Dhillon & Modha, Concept decompositions for large sparse text data (2001). It starts from centroids
that greedy k-means++ draws (Arthur & Vassilvitskii 2007), several times; the best run is kept.
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
#: The restarts are run on this many vectors for each centroid; only the best one on all.
DRAWN_FOR_EACH = 100
#: Among how many candidates k-means++ takes the next centroid.
CANDIDATES = 16
MAX_DEFAULT_GROUPS = 50


def default_groups(n: int) -> int:
    """√(n/2) groups, an old rule of thumb (Mardia et al. 1979), but no more than one can read."""
    return max(1, min(round(math.sqrt(n / 2)), MAX_DEFAULT_GROUPS))


def nearest_centroids(
    vectors: Matrix, groups: int, seed: int, on_progress: Callable[[int, int], None]
) -> list[Rows]:
    """Rows by their centroid; fewer groups than wanted where no more vectors differ.

    Args:
        vectors: unit vectors, shape (n, dimension), at least one.
        groups: how many, at most n.
        seed: the same seed brings the same groups.
        on_progress: called after each run with the comparisons done, and all of them.
    """
    n = len(vectors)
    vectors = numpy.ascontiguousarray(vectors, numpy.float32)
    random = numpy.random.default_rng(seed)
    drawn = numpy.sort(random.choice(n, min(n, groups * DRAWN_FOR_EACH), replace=False))
    sample = vectors[drawn]
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
    """FAISS's k-means, from these centroids."""
    import faiss

    groups, dimension = centroids.shape
    means = faiss.Kmeans(
        dimension,
        groups,
        niter=ROUNDS,
        spherical=True,
        seed=1,  # for splitting centroids that have lost their vectors
        min_points_per_centroid=1,  # with fewer it would warn
        max_points_per_centroid=len(vectors),
    )
    means.train(vectors, init_centroids=centroids)
    return means


def _first_centroids(vectors: Matrix, groups: int, random: numpy.random.Generator) -> Matrix:
    """Vectors far from each other: each the best of some drawn by their squared distances."""
    chosen = [int(random.integers(len(vectors)))]
    # Half the squared distance of unit vectors is what their cosine lacks to 1.
    lacking = numpy.maximum(1 - vectors @ vectors[chosen[0]], 0)
    while len(chosen) < groups:
        sums = numpy.cumsum(lacking, dtype=numpy.float64)
        places = numpy.searchsorted(sums, random.random(CANDIDATES) * sums[-1])
        places = numpy.minimum(places, len(vectors) - 1)
        remaining = numpy.maximum(1 - vectors[places] @ vectors.T, 0)
        numpy.minimum(remaining, lacking, out=remaining)
        best = int(remaining.sum(axis=1, dtype=numpy.float64).argmin())
        chosen.append(int(places[best]))
        lacking = remaining[best]
    return vectors[chosen]
