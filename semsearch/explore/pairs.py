"""Finds the most similar pairs of a collection.

All rows are compared, in tiles, each a matrix product: twice as fast as FAISS, whose searches
compare each pair twice. A score is the cosine, rounded to six decimals; equal scores are in the
order of the collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError, check_number
from semsearch.explore.vectors import Rows, check_unit_rows
from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS
from semsearch.search.options import check_whole_number

#: Rows on each side of a tile; its products take 4 MiB.
TILE_ROWS = 1024
#: Pairs with a product up to this much below the minimum are rounded before they are compared.
ROUNDING = 10**-SCORE_DECIMALS


class Pair(NamedTuple):
    """Two texts by their positions in a collection, left before right; higher scores are closer.

    >>> from semsearch import Pair
    >>> max([Pair(0, 1, 0.5), Pair(1, 2, 0.9)], key=lambda pair: pair.score)
    Pair(left=1, right=2, score=0.9)
    """

    left: int
    right: int
    score: float


class Columns(NamedTuple):
    """Pairs as columns, left before right."""

    lefts: Rows
    rights: Rows
    scores: NDArray[numpy.float64]

    def take(self, chosen: Rows) -> Columns:
        """A selection, in the order of `chosen`."""
        return Columns(*(column[chosen] for column in self))

    def best_with(self, others: Columns, k: int) -> Columns:
        """The `k` best of these and other pairs, best first."""
        joined = Columns(*map(numpy.concatenate, zip(self, others, strict=True)))
        order = numpy.lexsort((joined.rights, joined.lefts, -joined.scores))
        return joined.take(order[:k])


def similar_pairs(
    vectors: Matrix,
    k: int | None = 20,
    min_score: float | None = None,
    *,
    groups: Rows | None = None,
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
        on_progress: called after each tile with the number of pairs compared and their total.

    Raises:
        ArgumentError: `k` is below 1, `min_score` is not between -1 and 1, the shapes do not match,
            or a vector is not of unit length.
    """
    check_limits(k, min_score)
    vectors = check_unit_rows(vectors)
    if groups is not None:
        groups = numpy.asarray(groups)
        if groups.shape != vectors.shape[:1] or groups.dtype.kind not in "iu":
            raise ArgumentError(
                f"groups must be integers, one for each of {len(vectors)} vectors, not "
                f"{groups.dtype} of shape {groups.shape}"
            )
    least = -1.0 if min_score is None else float(min_score)
    return (
        Pair._make(pair)
        for columns in _compared(vectors, groups, k, least, on_progress)
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


def _compared(
    vectors: Matrix,
    groups: Rows | None,
    k: int | None,
    min_score: float,
    on_progress: Callable[[int, int], None],
) -> Iterator[Columns]:
    """All pairs, tile by tile, or the `k` best, the last of which raises the minimum score."""
    n, done = len(vectors), 0
    vectors = numpy.asarray(vectors, numpy.float32)
    none = numpy.empty(0, numpy.int64)
    best = Columns(none, none, numpy.empty(0))
    for left in range(0, n, TILE_ROWS):
        lefts = slice(left, left + TILE_ROWS)
        for right in range(left, n, TILE_ROWS):
            rights = slice(right, right + TILE_ROWS)
            products = vectors[lefts] @ vectors[rights].T
            near = products >= min_score - ROUNDING
            if groups is not None:
                near &= groups[lefts][:, None] != groups[rights]
            if left == right:
                near = numpy.triu(near, 1)
                done += len(near) * (len(near) - 1) // 2
            else:
                done += near.size
            found = _scored(products, near, k, min_score)
            found = found._replace(lefts=found.lefts + left, rights=found.rights + right)
            if k is None:
                yield found
            else:
                best = best.best_with(found, k)
                if len(best.scores) == k:
                    min_score = float(best.scores[-1])
            on_progress(done, n * (n - 1) // 2)
    yield best


def _scored(
    products: Matrix, near: NDArray[numpy.bool], k: int | None, min_score: float
) -> Columns:
    """The scores of `near` pairs of a tile, without those that cannot be among the `k` best."""
    if k is not None and numpy.count_nonzero(near) > k:
        kth = float(numpy.partition(products[near], -k)[-k])
        near &= products >= kth - ROUNDING
    lefts, rights = numpy.nonzero(near)
    scores = products[lefts, rights].astype(numpy.float64).round(SCORE_DECIMALS).clip(-1, 1)
    return Columns(lefts, rights, scores).take(numpy.flatnonzero(scores >= min_score))
