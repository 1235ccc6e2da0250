"""Projects vectors to two dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.explore.vectors import SCORE_DECIMALS
from semsearch.protocols import Matrix

#: The maximum number of passages projected with UMAP; others are placed between neighbours.
SAMPLE = 100_000
#: Fewer vectors are projected to their principal components.
FEW = 50
#: UMAP's n_neighbors and min_dist.
NEIGHBOURS, MIN_DISTANCE = 15, 0.1
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

    Uses UMAP (McInnes, Healy and Melville 2018). Of more than `SAMPLE` vectors, a sample is
    projected; each of the others is placed at the mean of its nearest neighbours in the sample,
    weighted by their cosines.

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
        return _umap(vectors, seed, on_progress)
    random = numpy.random.default_rng(seed)
    sampled = numpy.sort(random.choice(len(vectors), SAMPLE, replace=False))
    points = _umap(vectors[sampled], seed, on_progress)
    return _between(vectors, vectors[sampled], points, on_progress)


def _principal_components(vectors: Matrix) -> Points:
    points = numpy.zeros((len(vectors), 2), numpy.float32)
    if len(vectors) > 1:
        left, lengths, _ = numpy.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        found = (left * lengths)[:, :2]
        points[:, : found.shape[1]] = found
    return points


def _umap(vectors: Matrix, seed: int, on_progress: OnProgress) -> Points:
    neighbours = _neighbours(vectors, on_progress)
    on_progress("loading and compiling UMAP", 0, 0)
    with warnings.catch_warnings():
        # Warnings that TensorFlow is missing, that a seeded run uses a single thread, and that the
        # given neighbours cannot be searched.
        warnings.simplefilter("ignore")
        import umap

        model = umap.UMAP(
            n_neighbors=NEIGHBOURS,
            min_dist=MIN_DISTANCE,
            metric="cosine",
            init="pca",
            random_state=seed % 2**32,  # the largest that it takes is 2**32 - 1
            precomputed_knn=neighbours,
            tqdm_kwds={"disable": False, "bar_format": "{n} {total}", "file": _Epochs(on_progress)},
        )
        return numpy.asarray(model.fit_transform(vectors), numpy.float32)


def _neighbours(vectors: Matrix, on_progress: OnProgress) -> tuple[NDArray[Any], NDArray[Any]]:
    """The nearest vectors to each vector, itself included, and their cosine distances.

    UMAP's own search is compiled in every run: with 5,000 vectors, it took 70 s of a slow core, and
    this one took 1 s.
    """
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    searching = partial(on_progress, "neighbours")
    cosines, neighbours = _searched(index, vectors, NEIGHBOURS, searching)
    # Rounded, so that the distance of a vector to itself is 0.
    return neighbours, numpy.maximum(1 - cosines, 0).round(SCORE_DECIMALS)


class _Epochs:
    """A file to which tqdm writes the number of finished epochs and of all, as text."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress

    def write(self, text: str) -> None:
        """Report the numbers; tqdm also writes ends of lines."""
        if text.strip():
            done, total = text.split()
            self._on_progress("epochs", int(done), int(total))


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
