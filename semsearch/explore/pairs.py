"""Finds the most similar pairs of a collection.

Small collections are searched exactly, large ones approximately. A score is the cosine, rounded to
six decimals; equal scores are in the order of the collection. Rows are compared in tiles, each a
matrix product: twice as fast as FAISS, whose searches compare each pair twice, and with cells three
times as fast as its inverted file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError, check_number, check_whole_number
from semsearch.explore.cells import nearest_cells
from semsearch.explore.vectors import SCORE_DECIMALS, Rows, check_unit_rows
from semsearch.protocols import Matrix
from semsearch.records import Pair

#: The maximum number of rows for exact search.
EXACT_UP_TO = 100_000
#: Rows on each side of a tile; its products take 4 MiB.
TILE_ROWS = 1024
#: The size, in numbers, of the batches of candidate vectors that are rescored.
RESCORED_NUMBERS = 1 << 20
EXCLUDED = -3.0  # below any score
#: The maximum error of a float32 product of unit vectors, rounding included. It only affects which
#: pairs are rescored.
MARGIN = 1e-5

Mask = NDArray[numpy.bool]


class Columns(NamedTuple):
    """Pairs as columns, left before right."""

    lefts: Rows
    rights: Rows
    scores: NDArray[numpy.float64]

    def take(self, chosen: Rows | Mask) -> Columns:
        """A selection, in the order of `chosen`."""
        return Columns(*(column[chosen] for column in self))

    def best_with(self, others: Columns, k: int) -> Columns:
        """The `k` best of these and other pairs, best first."""
        joined = Columns(*map(numpy.concatenate, zip(self, others, strict=True)))
        order = numpy.lexsort((joined.rights, joined.lefts, -joined.scores))
        return joined.take(order[:k])


class Plan(NamedTuple):
    """The selection of pairs to compare."""

    #: Rows to compare with others; a tile of the same rows twice compares them among themselves.
    tiles: Iterator[tuple[Rows, Rows]]
    comparisons: int  #: the number of pairs in all tiles
    #: Which of these pairs count in a tile: each pair is counted once across tiles. None for all.
    first_seen: Callable[[Rows, Rows], Mask] | None = None


def similar_pairs(
    vectors: Matrix,
    k: int | None = 20,
    min_score: float | None = None,
    *,
    groups: Rows | None = None,
    exact_up_to: int = EXACT_UP_TO,
    notify: Callable[[str], None] = lambda message: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Pair]:
    """Find the pairs of rows with the highest cosines, each pair once.

    >>> from semsearch import load_encoder, similar_pairs
    >>> texts = ["a red fish", "a blue bird", "a red fish swims"]
    >>> vectors = load_encoder("hashing").encode_documents(texts)
    >>> [(pair.left, pair.right) for pair in similar_pairs(vectors, k=1)]
    [(0, 2)]

    Args:
        vectors: unit vectors, shape (n, dimension).
        k: the number of pairs, best first; None yields all pairs as they are found.
        min_score: the minimum score.
        groups: a number for each row; rows with the same number are not paired.
        exact_up_to: the maximum number of rows for exact search; larger collections are searched
            approximately.
        notify: called with one line about the measured recall of an approximate search.
        on_progress: called after each tile with the number of pairs compared and their total.

    Raises:
        ArgumentError: `k` is below 1, `min_score` is not between -1 and 1, the shapes do not match,
            or a vector is not of unit length.
    """
    check_limits(k, min_score)
    exact_up_to = check_whole_number("exact_up_to", exact_up_to, 0)
    vectors = check_unit_rows(vectors)
    if groups is not None:
        groups = numpy.asarray(groups)
        if groups.shape != vectors.shape[:1] or groups.dtype.kind not in "iu":
            raise ArgumentError(
                f"groups must be integers, one for each of {len(vectors)} vectors, not "
                f"{groups.dtype} of shape {groups.shape}"
            )
    least = -1.0 if min_score is None else float(min_score)

    def found() -> Iterator[Columns]:
        rows = numpy.asarray(vectors, numpy.float32)
        if len(rows) <= exact_up_to:
            plan = _every_pair(len(rows))
        else:
            plan = _within_cells(*nearest_cells(rows, groups, least, notify))
        return _compared(rows, groups, plan, k, least, on_progress)

    return (
        Pair._make(pair)
        for columns in found()
        for pair in zip(*(column.tolist() for column in columns), strict=True)
    )


def check_limits(k: int | None, min_score: float | None) -> None:
    """Validate arguments of `similar_pairs` before vectors are computed.

    Raises:
        ArgumentError: `k` is below 1, or `min_score` is not between -1 and 1.
    """
    if k is not None:
        check_whole_number("k", k, 1)
    if min_score is not None:
        check_number("min_score", min_score, -1, 1)


def _every_pair(n: int) -> Plan:
    """The tiles on and above the diagonal."""
    blocks = _split(numpy.arange(n))
    tiles = ((block, other) for place, block in enumerate(blocks) for other in blocks[place:])
    return Plan(tiles, n * (n - 1) // 2)


def _within_cells(probes: Rows, cells: int) -> Plan:
    """Compare the members of each cell with each other and with the rows that probe it.

    Args:
        probes: the nearest cells of each row, beginning with its own.
        cells: their number.
    """

    def by_cell(cell_of: Rows) -> tuple[Rows, Rows]:
        """Positions ordered by their cell, and where each cell begins."""
        order = numpy.argsort(cell_of, kind="stable")
        return order, numpy.searchsorted(cell_of[order], numpy.arange(cells + 1))

    members, starts = by_cell(probes[:, 0])
    visits, visit_starts = by_cell(probes[:, 1:].reshape(-1))
    visitors = visits // max(1, probes.shape[1] - 1)

    def tiles() -> Iterator[tuple[Rows, Rows]]:
        for cell in range(cells):
            blocks = _split(members[starts[cell] : starts[cell + 1]])
            visiting = _split(visitors[visit_starts[cell] : visit_starts[cell + 1]])
            for place, block in enumerate(blocks):
                yield from ((block, other) for other in blocks[place:])
                yield from ((other, block) for other in visiting)

    def first_seen(lefts: Rows, rights: Rows) -> Mask:
        """Rows that probe each other's cells meet twice, once reversed."""
        own = probes[lefts, 0][:, None]
        seen: Mask = (lefts < rights) | ~(probes[rights] == own).any(axis=1)
        return seen

    sizes = numpy.diff(starts)
    comparisons = sizes * (sizes - 1) // 2 + sizes * numpy.diff(visit_starts)
    return Plan(tiles(), int(comparisons.sum()), first_seen)


def _split(rows: Rows) -> list[Rows]:
    return [rows[start : start + TILE_ROWS] for start in range(0, len(rows), TILE_ROWS)]


def _compared(
    vectors: Matrix,
    groups: Rows | None,
    plan: Plan,
    k: int | None,
    min_score: float,
    on_progress: Callable[[int, int], None],
) -> Iterator[Columns]:
    """All pairs in batches, or the `k` best, the last of which raises the minimum score."""
    none = numpy.empty(0, numpy.int64)
    best = Columns(none, none, numpy.empty(0))
    done = 0
    buffer = numpy.empty(TILE_ROWS * TILE_ROWS, numpy.float32)  # new memory for each tile is slow
    size = max(1, RESCORED_NUMBERS // max(1, vectors.shape[1]))
    for lefts, rights in plan.tiles:
        products = buffer[: len(lefts) * len(rights)].reshape(len(lefts), len(rights))
        numpy.matmul(vectors[lefts], vectors[rights].T, out=products)
        is_triangle = lefts is rights
        if is_triangle:
            numpy.copyto(products, EXCLUDED, where=numpy.tri(len(products), dtype=numpy.bool))
        if groups is not None:
            same = groups[lefts][:, None] == groups[rights]
            numpy.copyto(products, EXCLUDED, where=same)
        near = _near(products.reshape(-1), k, min_score)
        for start in range(0, len(near), size):
            batch = near[start : start + size]
            pair = lefts[batch // len(rights)], rights[batch % len(rights)]
            wanted = _open_to(best, k, *pair)
            if plan.first_seen is not None:
                wanted &= plan.first_seen(*pair)
            found = _scored(vectors, pair[0][wanted], pair[1][wanted])
            found = found.take(found.scores >= min_score)
            if k is None:
                yield found
                continue
            best = best.best_with(found, k)
            if len(best.scores) == k:
                min_score = float(best.scores[-1])
        done += len(lefts) * (len(lefts) - 1) // 2 if is_triangle else products.size
        on_progress(done, plan.comparisons)
    yield best


def _near(products: Matrix, k: int | None, min_score: float) -> Rows:
    """The positions of products that can be among the `k` best of a tile."""
    near: Rows = numpy.flatnonzero(products >= min_score - MARGIN)
    if k is not None and len(near) > k:
        kth = float(numpy.partition(products[near], -k)[-k])
        near = near[products[near] >= kth - 2 * MARGIN]
    return near


def _open_to(best: Columns, k: int | None, lefts: Rows, rights: Rows) -> Mask:
    """All pairs; if the k-th best scores 1, the maximum, only those that precede it."""
    if len(best.scores) != k or best.scores[-1] < 1:
        return numpy.ones(len(lefts), numpy.bool)
    left, right = best.lefts[-1], best.rights[-1]
    before: Mask = (lefts < left) | ((lefts == left) & (rights < right))
    return before


def _scored(vectors: Matrix, lefts: Rows, rights: Rows) -> Columns:
    """Final scores, which do not depend on the tile."""
    cosines = numpy.multiply(vectors[lefts], vectors[rights], dtype=numpy.float64).sum(axis=1)
    scores = numpy.clip(cosines.round(SCORE_DECIMALS), -1, 1)
    return Columns(numpy.minimum(lefts, rights), numpy.maximum(lefts, rights), scores)
