"""Compares vectors with each other in tiles: one matrix product per block of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError
from semsearch.protocols import Matrix
from semsearch.records import Pair

#: Rows on each side of a tile; its scores take 4 MiB.
TILE_ROWS = 1024
#: The size, in numbers, of the batches of candidate vectors that are rescored.
RESCORED_NUMBERS = 1 << 20
SCORE_DECIMALS = 6
#: The allowed deviation of a vector's length from 1: float16 has three digits.
LENGTH_TOLERANCE = 1e-2
EXCLUDED = -3.0  # below any score
#: The maximum error of a float32 product of unit vectors, rounding included. It only affects which
#: pairs are rescored.
MARGIN = 1e-5

#: Row numbers of a matrix, or other integers per row.
Rows = NDArray[numpy.int64]
Mask = NDArray[numpy.bool]


@dataclass(frozen=True, slots=True)
class Found:
    """Pairs as columns, left before right."""

    lefts: Rows
    rights: Rows
    scores: NDArray[numpy.float64]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, chosen: Rows | Mask) -> Found:
        """A selection, in the order of `chosen`."""
        return Found(self.lefts[chosen], self.rights[chosen], self.scores[chosen])

    def best(self, k: int) -> Found:
        """The `k` best pairs, best first."""
        return self.take(numpy.lexsort((self.rights, self.lefts, -self.scores))[:k])

    def pairs(self) -> Iterator[Pair]:
        """Iterate over the pairs as records."""
        columns = (self.lefts.tolist(), self.rights.tolist(), self.scores.tolist())
        return map(Pair._make, zip(*columns, strict=True))


class Tile(NamedTuple):
    """Rows to compare with other rows or, as a triangle, among themselves."""

    lefts: slice | Rows
    rights: slice | Rows
    triangle: bool


class Plan(Protocol):
    """Protocol for the selection of pairs to compare."""

    @property
    def comparisons(self) -> int:
        """The number of pairs in all tiles."""

    def tiles(self) -> Iterator[Tile]:
        """Tiles with every selected pair at least once."""

    def first_seen(self, lefts: Rows, rights: Rows) -> Mask:
        """Which of these pairs count in this tile: each pair is counted once across tiles."""


class EveryTile:
    """All pairs of `n` rows."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.comparisons = n * (n - 1) // 2

    def tiles(self) -> Iterator[Tile]:
        """The tiles on and above the diagonal."""
        for top in range(0, self._n, TILE_ROWS):
            for start in range(top, self._n, TILE_ROWS):
                rows, columns = (slice(first, first + TILE_ROWS) for first in (top, start))
                yield Tile(rows, columns, top == start)

    def first_seen(self, lefts: Rows, rights: Rows) -> Mask:
        """All, since no two tiles contain the same pair."""
        return numpy.ones(len(lefts), numpy.bool)


def unit_rows(vectors: Any) -> Matrix:
    """Validate vectors as the rows of a matrix, shape (n, dimension), without copying if possible.

    Raises:
        ArgumentError: they are not a matrix of numbers, or a row is not of unit length.
    """
    try:
        matrix: Matrix = numpy.asarray(vectors)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged rows, or torch's bfloat16
        raise ArgumentError(f"vectors must be the rows of a matrix: {error}") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or not matrix.shape[1]:
        raise ArgumentError(
            f"vectors must be the rows of a matrix of numbers, not {matrix.dtype} of shape "
            f"{matrix.shape}"
        )
    for start in range(0, len(matrix), TILE_ROWS):
        rows = matrix[start : start + TILE_ROWS].astype(numpy.float32, copy=False)
        lengths = numpy.linalg.norm(rows, axis=1)
        for row in numpy.flatnonzero(~(abs(lengths - 1) <= LENGTH_TOLERANCE)):  # NaN, too
            raise ArgumentError(
                f"vectors must be of unit length, but the length of row {start + row} is "
                f"{lengths[row]:g}; divide each by its length"
            )
    return matrix


def paired_scores(lefts: Matrix, rights: Matrix) -> NDArray[numpy.float64]:
    """The cosine of each row with that of the other matrix, rounded so that equal ones are tied."""
    cosines = numpy.multiply(lefts, rights, dtype=numpy.float64).sum(axis=1)
    scores: NDArray[numpy.float64] = numpy.clip(cosines.round(SCORE_DECIMALS), -1, 1)
    return scores


class Comparison:
    """Products and scores of pairs of rows."""

    def __init__(self, vectors: Matrix, groups: Rows | None) -> None:
        self.vectors = numpy.asarray(vectors, numpy.float32)
        self.groups = groups
        self.rows: Rows = numpy.arange(len(vectors))
        self.piece = max(1, RESCORED_NUMBERS // max(1, vectors.shape[1]))
        self._buffer: Matrix = numpy.empty(TILE_ROWS * TILE_ROWS, numpy.float32)

    def products(self, tile: Tile) -> Matrix:
        """Products of a tile, valid until the next call; excluded pairs are EXCLUDED."""
        lefts, rights = self.vectors[tile.lefts], self.vectors[tile.rights]
        products = self._buffer[: len(lefts) * len(rights)].reshape(len(lefts), len(rights))
        numpy.matmul(lefts, rights.T, out=products)
        if tile.triangle:
            numpy.copyto(products, EXCLUDED, where=numpy.tri(len(products), dtype=numpy.bool))
        if self.groups is not None:
            same = self.groups[tile.lefts][:, None] == self.groups[tile.rights]
            numpy.copyto(products, EXCLUDED, where=same)
        return products

    def scored(self, lefts: Rows, rights: Rows) -> Found:
        """Final scores, which do not depend on the tile."""
        scores = paired_scores(self.vectors[lefts], self.vectors[rights])
        return Found(numpy.minimum(lefts, rights), numpy.maximum(lefts, rights), scores)
