"""Projects vectors to two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS

#: The maximum number of passages projected with t-SNE; others are placed between neighbours.
SAMPLE = 100_000
#: Fewer vectors are projected to their principal components.
FEW = 50
#: The perplexity of t-SNE, whose neighbours are three times as many.
PERPLEXITY = 15
#: The iterations of t-SNE, with exaggerated attraction and without; and between reports.
EXAGGERATED, ITERATIONS, REPORTED = 250, 500, 25
#: The exaggeration, as openTSNE recommends.
EXAGGERATION = 12
#: Vectors searched between two reports of progress.
SEARCHED_AT_ONCE = 1_000
#: The number of neighbours in the sample between which another passage is placed.
ANCHORS = 5
#: The minimum number of vectors per list for FAISS's k-means.
POINTS_PER_LIST = 39

Points = NDArray[Any]
#: Called with a step, how much of it is done, and of how much (0 if that is unknown).
OnProgress = Callable[[str, int, int], None]


def project(vectors: Matrix, seed: int, on_progress: OnProgress) -> Points:
    """Project vectors to points with similar neighbourhoods.

    Uses t-SNE (van der Maaten and Hinton 2008), interpolated by FFT (Linderman et al. 2019) and
    initialised with principal components (Kobak and Berens 2019). Of more than `SAMPLE` vectors, a
    sample is projected; each of the others is placed at the mean of its nearest neighbours in the
    sample, weighted by their cosines.

    Args:
        vectors: unit vectors, shape (n, dimension).
        seed: the same seed returns the same points.
        on_progress: called with the name of a step, how much of it is done, and of how much.

    Returns:
        Shape (n, 2), float32.
    """
    if len(vectors) < FEW:
        return _principal_components(vectors)
    if len(vectors) <= SAMPLE:
        return _tsne(vectors, seed, on_progress)
    random = numpy.random.default_rng(seed)
    sampled = numpy.sort(random.choice(len(vectors), SAMPLE, replace=False))
    points = _tsne(vectors[sampled], seed, on_progress)
    return _between(vectors, vectors[sampled], points, on_progress)


def _principal_components(vectors: Matrix) -> Points:
    points = numpy.zeros((len(vectors), 2), numpy.float32)
    if len(vectors) > 1:
        left, lengths, _ = numpy.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        found = (left * lengths)[:, :2]
        points[:, : found.shape[1]] = found
    return points


def _tsne(vectors: Matrix, seed: int, on_progress: OnProgress) -> Points:
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    nearest = PrecomputedNeighbors(*_neighbours(vectors, on_progress))
    affinities = PerplexityBasedNN(knn_index=nearest, perplexity=PERPLEXITY)
    random = numpy.random.default_rng(seed)
    start = _principal_components(vectors)
    start += random.normal(0, 1e-3, start.shape) * start.std()
    start *= 1e-4 / start[:, 0].std()  # as t-SNE expects
    total = EXAGGERATED + ITERATIONS
    done = 0

    def report(iteration: int, error: float, points: Points) -> None:
        on_progress("layout", done + iteration, total)

    points = TSNEEmbedding(
        start, affinities, random_state=seed, callbacks=report, callbacks_every_iters=REPORTED
    )
    points = points.optimize(EXAGGERATED, exaggeration=EXAGGERATION, momentum=0.5)
    done = EXAGGERATED
    points = points.optimize(ITERATIONS, momentum=0.8)
    return numpy.asarray(points, numpy.float32)


def _neighbours(vectors: Matrix, on_progress: OnProgress) -> tuple[NDArray[Any], NDArray[Any]]:
    """The nearest other vectors to each vector, and their cosine distances."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    k = min(3 * PERPLEXITY, len(vectors) - 1)
    cosines, neighbours = _searched(index, vectors, k + 1, partial(on_progress, "neighbours"))
    itself = neighbours == numpy.arange(len(vectors))[:, None]
    itself[~itself.any(axis=1), -1] = True  # of many equal vectors
    distances = numpy.maximum(1 - cosines, 0).round(SCORE_DECIMALS)
    return neighbours[~itself].reshape(-1, k), distances[~itself].reshape(-1, k)


def _between(vectors: Matrix, sample: Matrix, points: Points, on_progress: OnProgress) -> Points:
    """Place each vector at the weighted mean of the points of its neighbours in a sample."""
    import faiss

    dimension = vectors.shape[1]
    lists = max(1, min(round(4 * len(sample) ** 0.5), len(sample) // POINTS_PER_LIST))
    quantiser = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFFlat(quantiser, dimension, lists, faiss.METRIC_INNER_PRODUCT)
    index.train(sample)
    index.add(sample)
    index.nprobe = max(1, lists // 100)
    searching = partial(on_progress, "placing")
    cosines, neighbours = _searched(index, vectors, ANCHORS, searching)
    weights = numpy.where(neighbours >= 0, numpy.maximum(cosines, 1e-6), 0)
    # Favour near neighbours: the mean of distant ones would lie between groups.
    weights = weights**8
    weights /= weights.sum(axis=1, keepdims=True)
    found: Points = (points[neighbours] * weights[..., None]).sum(axis=1, dtype=numpy.float32)
    return found


def _searched(
    index: Any, vectors: Matrix, k: int, on_progress: Callable[[int, int], None]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Search a FAISS index for each vector: the cosines and rows of the `k` nearest, (n, k)."""
    blocks = []
    for start in range(0, len(vectors), SEARCHED_AT_ONCE):
        on_progress(start, len(vectors))
        block = vectors[start : start + SEARCHED_AT_ONCE]
        blocks.append(index.search(numpy.ascontiguousarray(block, numpy.float32), k))
    cosines, rows = zip(*blocks, strict=True)
    return numpy.concatenate(cosines), numpy.concatenate(rows)
