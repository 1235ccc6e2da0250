"""Finds the most similar pairs of a collection.

Small collections are searched exactly, large ones approximately. A score is the cosine, rounded to
six decimals; equal scores are in the order of the collection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy

from semsearch.arguments import check_callable, check_number, check_whole_number
from semsearch.errors import ArgumentError
from semsearch.mining.cells import choose_cells
from semsearch.pairwise import MARGIN, Comparison, EveryTile, Found, Mask, Plan, Rows, unit_rows
from semsearch.protocols import Matrix
from semsearch.records import Pair

#: The maximum number of rows for exact search.
EXACT_UP_TO = 100_000


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
    check_callable("notify", notify)
    check_callable("on_progress", on_progress)
    vectors = unit_rows(vectors)
    if groups is not None:
        groups = numpy.asarray(groups)
        if groups.shape != vectors.shape[:1] or groups.dtype.kind not in "iu":
            raise ArgumentError(
                f"groups must be integers, one for each of {len(vectors)} vectors, not "
                f"{groups.dtype} of shape {groups.shape}"
            )
    floor = -1.0 if min_score is None else float(min_score)

    def found() -> Iterator[Found]:
        comparison = Comparison(vectors, groups)
        if len(vectors) <= exact_up_to:
            plan: Plan = EveryTile(len(vectors))
        else:
            plan = choose_cells(comparison, floor, notify)
        if k is None:
            yield from _candidates(comparison, plan, _Limit(floor), on_progress)
        else:
            best = _Best(k, floor)
            for pairs in _candidates(comparison, plan, best, on_progress):
                best.add(pairs)
            yield best.ranked()

    return (pair for pairs in found() for pair in pairs.pairs())


def check_limits(k: int | None, min_score: float | None) -> None:
    """Validate arguments of `similar_pairs` before vectors are computed.

    Raises:
        ArgumentError: `k` is below 1, or `min_score` is not between -1 and 1.
    """
    if k is not None:
        check_whole_number("k", k, 1)
    if min_score is not None:
        check_number("min_score", min_score, -1, 1)


class _Limit:
    """The minimum score of pairs."""

    def __init__(self, min_score: float) -> None:
        self.min_score = min_score

    @property
    def floor(self) -> float:
        """The minimum float32 product."""
        return self.min_score - MARGIN

    def see(self, products: Matrix) -> None:
        """Called with the products of candidate pairs."""

    def open_to(self, lefts: Rows, rights: Rows) -> Mask | None:
        """Which of these pairs can still be among the results; None for all."""
        return None


class _Best(_Limit):
    """The `k` best pairs so far, which raise the minimum score."""

    def __init__(self, k: int, min_score: float) -> None:
        super().__init__(min_score)
        self._k = k
        self._kept: list[Found] = []
        self._added = 0
        self._last: Pair | None = None  # the k-th pair
        self._seen_floor = -math.inf

    @property
    def floor(self) -> float:
        """The minimum product of a pair to be among the best."""
        return max(super().floor, self._seen_floor)

    def see(self, products: Matrix) -> None:
        """Raise the floor to the k-th product of a tile, less the error margin of both."""
        if len(products) > self._k:
            kth = float(numpy.partition(products, -self._k)[-self._k])
            self._seen_floor = max(self._seen_floor, kth - 2 * MARGIN)

    def open_to(self, lefts: Rows, rights: Rows) -> Mask | None:
        """If the k-th pair scores 1, the maximum, only pairs that precede it."""
        if self._last is None or self._last.score < 1:
            return None
        left, right, _ = self._last
        before: Mask = (lefts < left) | ((lefts == left) & (rights < right))
        return before

    def add(self, found: Found) -> None:
        """Add pairs, and keep the best."""
        self._kept.append(found)
        self._added += len(found)
        if self._added >= self._k:
            best = self.ranked()
            self._kept, self._added = [best], 0
            if len(best) == self._k:
                (self._last,) = best.take(numpy.array([-1])).pairs()
                self.min_score = self._last.score

    def ranked(self) -> Found:
        """The best pairs, best first."""
        columns = [(found.lefts, found.rights, found.scores) for found in self._kept]
        if not columns:
            empty = numpy.empty(0, numpy.int64)
            return Found(empty, empty, numpy.empty(0))
        return Found(*map(numpy.concatenate, zip(*columns, strict=True))).best(self._k)


def _candidates(
    comparison: Comparison,
    plan: Plan,
    limit: _Limit,
    on_progress: Callable[[int, int], None],
) -> Iterator[Found]:
    """The pairs that meet the current limit, in batches."""
    done = 0
    for tile in plan.tiles():
        products = comparison.products(tile)
        lefts, rights = comparison.rows[tile.lefts], comparison.rows[tile.rights]
        flat = products.reshape(-1)
        positions = numpy.flatnonzero(flat >= limit.floor)
        limit.see(flat[positions])
        for start in range(0, len(positions), comparison.piece):
            batch = positions[start : start + comparison.piece]
            batch = batch[flat[batch] >= limit.floor]
            pair = lefts[batch // len(rights)], rights[batch % len(rights)]
            wanted = plan.first_seen(*pair)
            open_to = limit.open_to(*pair)
            if open_to is not None:
                wanted &= open_to
            found = comparison.scored(pair[0][wanted], pair[1][wanted])
            found = found.take(found.scores >= limit.min_score)
            if len(found):
                yield found
        done += len(lefts) * (len(lefts) - 1) // 2 if tile.triangle else flat.size
        on_progress(done, plan.comparisons)
