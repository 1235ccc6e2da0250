"""From vectors of many dimensions to points of two."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

#: UMAP places so many passages; more are placed between those nearest to them.
SAMPLE = 100_000
#: With fewer vectors there is no neighbourhood to keep, and principal components do.
FEW = 50
#: How many neighbours of a passage are kept near it, and how close points may lie.
NEIGHBOURS, MIN_DISTANCE = 15, 0.1
#: Between how many of the sample another passage is placed.
ANCHORS = 5
#: So many vectors FAISS's k-means wants at least for each of its lists.
POINTS_PER_LIST = 39

Points = NDArray[Any]


def project(vectors: Matrix, seed: int, notify: Callable[[str], None]) -> Points:
    """Points whose neighbours are those of the vectors, as far as two dimensions allow.

    By UMAP (McInnes, Healy and Melville 2018); of more than `SAMPLE` vectors, a sample is
    projected, and each of the others lies at the mean of its nearest in the sample, weighted by
    their cosines.

    Args:
        vectors: unit vectors, shape (n, dimension).
        seed: the same seed brings the same points.
        notify: is told what is being done.

    Returns:
        Shape (n, 2), float32.
    """
    if len(vectors) < FEW:
        return _principal_components(vectors)
    if len(vectors) <= SAMPLE:
        notify(f"UMAP of {len(vectors):,} passages")
        return _umap(vectors, seed)
    random = numpy.random.default_rng(seed)
    sampled = numpy.sort(random.choice(len(vectors), SAMPLE, replace=False))
    notify(f"UMAP of {SAMPLE:,} passages, between which the others are placed")
    points = _umap(vectors[sampled], seed)
    return _between(vectors, vectors[sampled], points)


def _principal_components(vectors: Matrix) -> Points:
    points = numpy.zeros((len(vectors), 2), numpy.float32)
    if len(vectors) > 1:
        left, lengths, _ = numpy.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        found = (left * lengths)[:, :2]
        points[:, : found.shape[1]] = found
    return points


def _umap(vectors: Matrix, seed: int) -> Points:
    with warnings.catch_warnings():
        # That there is no TensorFlow, and that a seed makes it use one thread.
        warnings.simplefilter("ignore")
        import umap

        model = umap.UMAP(
            n_neighbors=NEIGHBOURS,
            min_dist=MIN_DISTANCE,
            metric="cosine",
            init="pca",
            random_state=seed,
        )
        return numpy.asarray(model.fit_transform(vectors), numpy.float32)


def _between(vectors: Matrix, sample: Matrix, points: Points) -> Points:
    """Each vector at the weighted mean of the points of those nearest to it in a sample."""
    import faiss

    dimension = vectors.shape[1]
    lists = max(1, min(round(4 * len(sample) ** 0.5), len(sample) // POINTS_PER_LIST))
    quantiser = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFFlat(quantiser, dimension, lists, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    index.add(sample)
    index.nprobe = max(1, lists // 100)
    cosines, places = index.search(numpy.ascontiguousarray(vectors, numpy.float32), ANCHORS)
    weights = numpy.where(places >= 0, numpy.maximum(cosines, 1e-6), 0)
    # The nearer ones count for much more: a mean of far ones would lie between groups.
    weights = weights**8
    weights /= weights.sum(axis=1, keepdims=True)
    found: Points = (points[places] * weights[..., None]).sum(axis=1, dtype=numpy.float32)
    return found
