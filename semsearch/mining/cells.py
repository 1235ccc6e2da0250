"""Selects which texts of a large collection to compare, by cells around centroids.

As in an inverted file index, each row is compared with the rows of its nearest cells. The number of
cells is chosen on a sample, and the recall is measured on another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.pairwise import EXCLUDED, TILE_ROWS, Comparison, Mask, Rows, Tile
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


class Cells:
    """Rows by cell, and for each row its nearest cells, beginning with its own."""

    def __init__(self, probes: NDArray[numpy.int32], cells: int) -> None:
        self._probes = probes
        by_cell = numpy.arange(cells + 1)
        own = probes[:, 0]
        self._members: Rows = numpy.argsort(own, kind="stable")
        self._starts = numpy.searchsorted(own[self._members], by_cell)
        others = probes[:, 1:].reshape(-1)
        self._visits: Rows = numpy.argsort(others, kind="stable")
        self._visit_starts = numpy.searchsorted(others[self._visits], by_cell)
        sizes, visits = numpy.diff(self._starts), numpy.diff(self._visit_starts)
        self.comparisons = int((sizes * (sizes - 1) // 2 + sizes * visits).sum())

    def tiles(self) -> Iterator[Tile]:
        """Tiles that compare the members of each cell with each other and with its probing rows."""
        neighbours = self._probes.shape[1] - 1
        for cell in range(len(self._starts) - 1):
            members = self._members[self._starts[cell] : self._starts[cell + 1]]
            visits = self._visits[self._visit_starts[cell] : self._visit_starts[cell + 1]]
            visitors = visits // max(1, neighbours)
            blocks = _split(members)
            for number, block in enumerate(blocks):
                yield Tile(block, block, triangle=True)
                for later in blocks[number + 1 :]:
                    yield Tile(block, later, triangle=False)
                for visiting in _split(visitors):
                    yield Tile(visiting, block, triangle=False)

    def first_seen(self, lefts: Rows, rights: Rows) -> Mask:
        """Which pairs are new: rows that probe each other's cells meet twice, once reversed."""
        cells = self._probes[lefts, 0][:, None]
        seen: Mask = (lefts < rights) | ~(self._probes[rights] == cells).any(axis=1)
        return seen


def _split(rows: Rows) -> list[Rows]:
    return [rows[start : start + TILE_ROWS] for start in range(0, len(rows), TILE_ROWS)]


def choose_cells(comparison: Comparison, floor: float, notify: Callable[[str], None]) -> Cells:
    """Cells around k-means centroids, and the number to probe for the wanted recall."""
    import faiss

    vectors = comparison.vectors
    n, dimension = vectors.shape
    random = numpy.random.default_rng(SEED)
    count = max(1, min(round(2 * math.sqrt(n)), n // POINTS_PER_CELL))
    chosen = random.choice(n, min(n, count * POINTS_PER_CELL), replace=False)
    means = faiss.Kmeans(dimension, count, niter=TRAINING_ROUNDS, spherical=True, seed=SEED)
    means.train(vectors[chosen])

    def nearest_cells(rows: slice | Rows, probes: int) -> NDArray[numpy.int32]:
        return means.index.search(vectors[rows], probes)[1].astype(numpy.int32)  # type: ignore[no-any-return]

    most = min(MAX_PROBES, count)
    sample = random.choice(n, min(n, SAMPLE_ROWS), replace=False)
    halves = [
        _probes_needed(comparison, half, floor, most, nearest_cells)
        for half in (sample[::2], sample[1::2])
    ]
    wanted = math.ceil(WANTED_RECALL * len(halves[0]))
    probes = min(most, int(numpy.sort(halves[0])[wanted - 1]) if wanted else 1)
    recall = float((halves[1] <= probes).mean()) if len(halves[1]) else 1.0
    notify(
        f"{n:,} texts are too many to compare all pairs; each is compared with those of {probes} "
        f"of {count:,} cells, with a recall of {recall:.1%} (measured on {len(halves[1]):,} near "
        "pairs)"
    )
    table = numpy.empty((n, probes), numpy.int32)
    for start in range(0, n, ASSIGNED_AT_ONCE):
        rows = slice(start, start + ASSIGNED_AT_ONCE)
        table[rows] = nearest_cells(rows, probes)
    return Cells(table, count)


def _probes_needed(
    comparison: Comparison,
    sample: Rows,
    floor: float,
    most: int,
    nearest_cells: Callable[[Rows, int], NDArray[numpy.int32]],
) -> Rows:
    """The number of cells to probe to find each neighbour of the sample.

    A pair is found from either side. Neighbours outside `most` cells count as `most` + 1.
    """
    neighbours, scores = _nearest(comparison, sample)
    counted = scores >= floor
    if counted.sum() < SAMPLE_MIN_PAIRS:
        counted = scores > EXCLUDED
    row, column = numpy.nonzero(counted)
    left, right = sample[row], neighbours[row, column]
    left_cells, right_cells = nearest_cells(left, most), nearest_cells(right, most)

    def rank(cells: NDArray[Any], own: NDArray[Any]) -> Rows:
        found = cells == own[:, :1]
        return numpy.where(found.any(axis=1), found.argmax(axis=1) + 1, most + 1)

    return numpy.minimum(rank(left_cells, right_cells), rank(right_cells, left_cells))


def _nearest(comparison: Comparison, sample: Rows) -> tuple[Rows, Matrix]:
    """The nearest other rows of a sample, by exact search, and their products."""
    neighbours = numpy.zeros((len(sample), SAMPLE_NEIGHBOURS), numpy.int64)
    scores = numpy.full(neighbours.shape, EXCLUDED, numpy.float32)
    for start in range(0, len(comparison.vectors), TILE_ROWS):
        rows = comparison.rows[start : start + TILE_ROWS]
        products = comparison.products(Tile(sample, slice(start, start + TILE_ROWS), False))
        numpy.copyto(products, EXCLUDED, where=sample[:, None] == rows)
        scores = numpy.concatenate([scores, products], axis=1)
        ids = numpy.broadcast_to(rows, products.shape)
        neighbours = numpy.concatenate([neighbours, ids], axis=1)
        best = numpy.argpartition(scores, -SAMPLE_NEIGHBOURS, axis=1)[:, -SAMPLE_NEIGHBOURS:]
        scores = numpy.take_along_axis(scores, best, axis=1)
        neighbours = numpy.take_along_axis(neighbours, best, axis=1)
    return neighbours, scores
