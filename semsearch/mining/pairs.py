"""The most similar pairs of a collection.

Up to a size of the collection all pairs are compared; beyond it, those that are likely to be near.
A score is the cosine, rounded to six decimals; equal scores come in the order of the collection.
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

#: Up to how many rows every pair is compared.
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
    """The pairs of rows with the highest cosines, each pair once.

    >>> from semsearch import load_encoder, similar_pairs
    >>> texts = ["a red fish", "a blue bird", "a red fish swims"]
    >>> vectors = load_encoder("hashing").encode_documents(texts)
    >>> [(pair.left, pair.right) for pair in similar_pairs(vectors, k=1)]
    [(0, 2)]

    Args:
        vectors: unit vectors, shape (n, dimension).
        k: how many pairs, best first; None brings all, as they are found, and holds none.
        min_score: only pairs that score as much or more.
        groups: a number for each row; rows of the same number are not paired.
        exact_up_to: up to how many rows every pair is compared; of more rows, only those that are
            likely to be near.
        notify: called with one line when the search is approximate: its measured recall.
        on_progress: called after each tile with the pairs compared, and all of them.

    Raises:
        ArgumentError: `k` is below 1, `min_score` is no cosine, the shapes do not fit, or a
            vector is not of unit length.
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
                f"groups must be whole numbers, one for each of {len(vectors)} vectors, not "
                f"{groups.dtype} of shape {groups.shape}"
            )
    floor = -1.0 if min_score is None else min_score

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
            for some in _candidates(comparison, plan, best, on_progress):
                best.add(some)
            yield best.ranked()

    return (pair for some in found() for pair in some.pairs())


def check_limits(k: int | None, min_score: float | None) -> None:
    """Refuse what `similar_pairs` would refuse, before there are vectors.

    Raises:
        ArgumentError: `k` is below 1, or `min_score` is no cosine.
    """
    if k is not None:
        check_whole_number("k", k, 1)
    if min_score is not None:
        check_number("min_score", min_score, -1, 1)


class _Limit:
    """What a pair must score to be wanted."""

    def __init__(self, min_score: float) -> None:
        self.min_score = min_score

    @property
    def floor(self) -> float:
        """What its product in float32 must be."""
        return self.min_score - MARGIN

    def see(self, products: Matrix) -> None:
        """Learn the products of pairs that will all be candidates."""

    def open_to(self, lefts: Rows, rights: Rows) -> Mask | None:
        """Which of these pairs could be wanted at all; None for any."""
        return None


class _Best(_Limit):
    """The `k` best pairs so far; they raise what others must score."""

    def __init__(self, k: int, min_score: float) -> None:
        super().__init__(min_score)
        self._k = k
        self._kept: list[Found] = []
        self._added = 0
        self._last: Pair | None = None  # of k pairs
        self._seen_floor = -math.inf

    @property
    def floor(self) -> float:
        """What the product of a pair must be for it to be among them."""
        return max(super().floor, self._seen_floor)

    def see(self, products: Matrix) -> None:
        """The k-th of any tile's products bounds what is wanted; each is off by the margin."""
        if len(products) > self._k:
            kth = float(numpy.partition(products, -self._k)[-self._k])
            self._seen_floor = max(self._seen_floor, kth - 2 * MARGIN)

    def open_to(self, lefts: Rows, rights: Rows) -> Mask | None:
        """With the last at 1, which nothing exceeds, only what stands before it."""
        if self._last is None or self._last.score < 1:
            return None
        left, right, _ = self._last
        before: Mask = (lefts < left) | ((lefts == left) & (rights < right))
        return before

    def add(self, found: Found) -> None:
        """Take what is good enough."""
        self._kept.append(found)
        self._added += len(found)
        if self._added >= self._k:
            best = self.ranked()
            self._kept, self._added = [best], 0
            if len(best) == self._k:
                (self._last,) = best.take(numpy.array([-1])).pairs()
                self.min_score = self._last.score

    def ranked(self) -> Found:
        """The best, in their order."""
        columns = [(some.lefts, some.rights, some.scores) for some in self._kept]
        if not columns:
            nothing = numpy.empty(0, numpy.int64)
            return Found(nothing, nothing, numpy.empty(0))
        return Found(*map(numpy.concatenate, zip(*columns, strict=True))).best(self._k)


def _candidates(
    comparison: Comparison,
    plan: Plan,
    limit: _Limit,
    on_progress: Callable[[int, int], None],
) -> Iterator[Found]:
    """The pairs that meet the limit as it is when they are found, some at a time."""
    done = 0
    for tile in plan.tiles():
        products = comparison.products(tile)
        lefts, rights = comparison.rows[tile.lefts], comparison.rows[tile.rights]
        flat = products.reshape(-1)
        places = numpy.flatnonzero(flat >= limit.floor)
        limit.see(flat[places])
        for start in range(0, len(places), comparison.piece):
            some = places[start : start + comparison.piece]
            some = some[flat[some] >= limit.floor]
            pair = lefts[some // len(rights)], rights[some % len(rights)]
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
