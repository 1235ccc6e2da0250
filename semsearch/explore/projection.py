"""Projects vectors to two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS

#: Fewer vectors are projected to their principal components.
FEW = 50
#: The perplexity of t-SNE, whose neighbours are three times as many.
PERPLEXITY = 15
#: The iterations of openTSNE's defaults, and those between reports.
ITERATIONS, REPORTED = 750, 25
#: The width of a cell of the grid on which forces are interpolated: twice openTSNE's default, which
#: keeps hardly more neighbours and takes three times as long with 20,000 texts.
CELL = 2
#: Vectors searched between two reports of progress.
SEARCHED_AT_ONCE = 1_000

Points = NDArray[Any]
#: Called with a step, how much of it is done, and of how much (0 if that is unknown).
OnProgress = Callable[[str, int, int], None]


def project(vectors: Matrix, seed: int, on_progress: OnProgress) -> Points:
    """Project vectors to points with similar neighbourhoods.

    Uses t-SNE (van der Maaten and Hinton 2008), interpolated by FFT (Linderman et al. 2019) and
    initialised with principal components (Kobak and Berens 2019).

    Args:
        vectors: unit vectors, shape (n, dimension).
        seed: the same seed returns the same points.
        on_progress: called with the name of a step, how much of it is done, and of how much.

    Returns:
        Shape (n, 2), float32.
    """
    if len(vectors) < FEW:
        return _principal_components(vectors)
    from openTSNE import TSNE
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    reports = 0

    def report(iteration: int, error: float, points: Points) -> None:
        nonlocal reports
        reports += 1
        on_progress("layout", reports * REPORTED, ITERATIONS)

    layout = TSNE(
        perplexity=PERPLEXITY,
        neighbors=PrecomputedNeighbors(*_neighbours(vectors, on_progress)),
        ints_in_interval=CELL,
        callbacks=report,
        callbacks_every_iters=REPORTED,
        random_state=seed,
    )
    return numpy.asarray(layout.fit(vectors), numpy.float32)


def _principal_components(vectors: Matrix) -> Points:
    points = numpy.zeros((len(vectors), 2), numpy.float32)
    if len(vectors) > 1:
        left, lengths, _ = numpy.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        found = (left * lengths)[:, :2]
        points[:, : found.shape[1]] = found
    return points


def _neighbours(vectors: Matrix, on_progress: OnProgress) -> tuple[NDArray[Any], NDArray[Any]]:
    """The nearest other vectors to each vector, and their cosine distances."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    k = min(3 * PERPLEXITY, len(vectors) - 1)
    found = []
    for start in range(0, len(vectors), SEARCHED_AT_ONCE):
        on_progress("neighbours", start, len(vectors))
        found.append(index.search(vectors[start : start + SEARCHED_AT_ONCE], k + 1))
    cosines, neighbours = map(numpy.concatenate, zip(*found, strict=True))
    itself = neighbours == numpy.arange(len(vectors))[:, None]
    itself[~itself.any(axis=1), -1] = True  # of many equal vectors
    distances = numpy.maximum(1 - cosines, 0).round(SCORE_DECIMALS)
    return neighbours[~itself].reshape(-1, k), distances[~itself].reshape(-1, k)
