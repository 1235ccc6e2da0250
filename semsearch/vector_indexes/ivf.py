"""The approximate index: candidates by short codes, ranked by exact vectors; measured recall."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import faiss
import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix
from semsearch.vector_indexes import Blocks, Ids
from semsearch.vector_indexes.flat import (
    FEW_ALLOWED,
    VectorIndex,
    at,
    filled,
    matrix_of,
    ranked,
    selector,
)

#: Queries of a recall test, and neighbours per query.
QUERIES = 400
NEIGHBOURS = 10
#: The length of a query's random part; see `RecallTest`.
RANDOM_PART = 1.2
#: The standard errors below a mean that reach its lower bound with 95 % confidence.
DEVIATIONS = 1.645
#: The largest difference between scores that count as equal.
ROUNDING = 1e-5


class RecallTest(NamedTuple):
    """Synthetic queries, each with the tenth best score of exact search.

    An index finds the neighbours of its own vectors more easily than those of real queries, which
    lie elsewhere. So a query lies halfway between two vectors, plus a longer step in a random
    direction, whose length was chosen with real queries (RESULTS.md, "The recall that is shown").
    """

    queries: Matrix
    least: Matrix  #: of each query, shape (m,)

    @classmethod
    def of(cls, index: VectorIndex, seed: int = 0) -> RecallTest:
        """400 queries of an index, depending on the seed."""
        random = numpy.random.default_rng(seed)
        left, right = (index.vectors(random.choice(index.ids, QUERIES)) for _ in range(2))
        away = numpy.float32(RANDOM_PART) * _directions(left.shape, random)
        queries = _unit(_unit(left + right) + away)
        scores, _ = index.exact_search(queries, NEIGHBOURS)
        return cls(queries, scores[:, -1])

    def recall(self, index: VectorIndex) -> float:
        """The recall@10 of a search, between 0 and 1: the lower bound with 95 % confidence."""
        scores, _ = index.search(self.queries, NEIGHBOURS)
        return _lower_bound(scores >= self.least[:, None] - ROUNDING)


def _lower_bound(is_found: NDArray[numpy.bool]) -> float:
    """The lower bound, with 95 % confidence, of the share that is found, shape (queries, 10)."""
    shares = is_found.mean(axis=1)
    return max(0.0, float(shares.mean() - DEVIATIONS * shares.std() / math.sqrt(len(shares))))


def _directions(shape: tuple[int, ...], random: numpy.random.Generator) -> Matrix:
    """Random unit vectors."""
    return _unit(random.standard_normal(shape).astype(numpy.float32))


def _unit(matrix: Matrix) -> Matrix:
    """The matrix with its rows normalised in place."""
    faiss.normalize_L2(matrix)
    return matrix


#: Up to this many vectors there is one list, that is, all codes are compared. With a few hundred
#: thousand, the neighbours of a query are spread over most of the lists (RESULTS.md).
ONE_LIST = 250_000

#: Candidates ranked by exact vectors per requested vector: the numbers to try, ascending.
CANDIDATES = (20, 40, 80)
#: The number of candidates grows with this power of the number of neighbours: with a million
#: vectors, the recall for 20, 50 and 100 neighbours then equalled that for 10.
GROWTH = 0.7
#: The factor between the numbers of lists tried in tuning.
LISTS_STEP = 1.3

#: Training vectors per cluster of k-means; FAISS requires 39.
TRAINING_VECTORS_PER_LIST = 40
#: The minimum number of training vectors, for the ranges of quantisers.
TRAINING_VECTORS = 20_000

#: If more than this share of the vectors would be candidates, all are compared.
MANY_CANDIDATES = 0.1


class IvfIndex(VectorIndex):
    """Lists of short codes of the vectors, with the exact vectors in the same file.

    The inverted file of Sivic & Zisserman (2003), as in FAISS (Douze et al. 2024), with codes for
    its fast scan. The number of lists to search (``nprobe``) and of candidates (``k_factor``) are
    tuned when the index is built, and stored in its file.
    """

    def __init__(self, index: Any) -> None:
        super().__init__(index)
        self._refine = faiss.downcast_index(index.index)
        self._codes = faiss.downcast_index(self._refine.base_index)

    @classmethod
    def build(cls, dimension: int, count: int, blocks: Blocks, recall: float = 0.98) -> Self:
        """Build an index; see `VectorIndex`."""
        lists = 1 if count <= ONE_LIST else round(math.sqrt(count))
        divisors = [number for number in range(1, dimension + 1) if dimension % number == 0]
        parts = next(number for number in divisors if 4 * number >= dimension)  # half a byte each
        kind = f"IVF{lists},PQ{parts}x4fs"
        codes = faiss.index_factory(dimension, kind, faiss.METRIC_INNER_PRODUCT)
        for trained in (codes, codes.pq):
            trained.cp.min_points_per_centroid = 1  # no warnings: the recall is measured
        flat, ids = filled(dimension, count, blocks)
        matrix = matrix_of(flat)
        wanted = max(TRAINING_VECTORS, TRAINING_VECTORS_PER_LIST * lists)
        places = numpy.linspace(0, count - 1, min(wanted, count)).astype(numpy.int64)
        codes.train(matrix[places])
        codes.add(matrix)
        built = cls._over(faiss.IndexRefine(codes, flat), ids)
        built.tune(recall)
        return built

    def tune(self, recall: float) -> None:
        """Choose the fewest lists, then the fewest candidates, that reach a recall@10, if any."""
        numbers = [1]
        while numbers[-1] < self._codes.nlist:
            numbers.append(min(math.ceil(numbers[-1] * LISTS_STEP), self._codes.nlist))
        coverage = self._list_coverage(seed=0)
        place = bisect_left(numbers, True, key=lambda number: coverage(number) >= recall)
        self._codes.nprobe = numbers[min(place, len(numbers) - 1)]
        test = RecallTest.of(self)
        for candidates in CANDIDATES:
            self._refine.k_factor = candidates
            if test.recall(self) >= recall:
                break

    def measured_recall(self) -> float:
        """The recall@10 for synthetic queries, different from those used for tuning.

        It is that of the lists or that of the candidates, whichever is lower.
        """
        candidates = RecallTest.of(self, seed=1).recall(self)
        return min(candidates, self._list_coverage(seed=1)(self._codes.nprobe))

    def _list_coverage(self, seed: int) -> Callable[[int], float]:
        """A function from a number of lists to the share of the nearest vectors in that many.

        The queries are random directions: compared by codes, these would have a low recall, unlike
        any real query.
        """
        count = int(self._codes.nlist)
        if count == 1:  # which has all vectors
            return lambda number: 1.0
        queries = _directions((QUERIES, self.matrix.shape[1]), numpy.random.default_rng(seed))
        _, nearest_ids = self.exact_search(queries, NEIGHBOURS)
        quantizer = faiss.downcast_index(self._codes.quantizer)
        _, own = quantizer.search(self.vectors(nearest_ids.ravel()), 1)
        _, lists = quantizer.search(queries, count)
        ranks = numpy.argsort(lists, axis=1)  # of each list, for each query
        needed = numpy.take_along_axis(ranks, own.reshape(nearest_ids.shape), axis=1)
        return lambda number: _lower_bound(needed < number)

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """`VectorIndex.search` among candidates; with fewer than `n` of them, among all vectors."""
        places = None if allowed is None else self._places(allowed)
        reachable = len(self) if places is None else len(places)
        candidates = self._candidates_of(n)
        if candidates >= MANY_CANDIDATES * reachable or reachable <= FEW_ALLOWED * len(self):
            return self.exact_search(queries, n, allowed)
        selected = None if places is None else selector(places, len(self))
        scores, found = self._refined(queries, n, candidates, selected)
        ids = at(self.ids, found)
        lacking = numpy.flatnonzero((ids < 0).any(axis=1))
        if len(lacking):
            scores[lacking], ids[lacking] = self.exact_search(queries[lacking], n, allowed)
        return scores, ids

    def _candidates_of(self, n: int) -> int:
        """The number of candidates; for more neighbours, fewer per neighbour suffice."""
        more, factor = max(n, NEIGHBOURS) / NEIGHBOURS, float(self._refine.k_factor)
        return math.ceil(NEIGHBOURS * factor * math.pow(more, GROWTH))

    def _refined(
        self, queries: Matrix, n: int, candidates: int, selected: Any
    ) -> tuple[Matrix, Ids]:
        """The `n` best of the candidates by codes; of equal codes, FAISS finds the first."""
        queries = numpy.ascontiguousarray(queries)
        parameters = faiss.SearchParametersIVF(nprobe=self._codes.nprobe, sel=selected)
        _, found = self._codes.search(queries, candidates, params=parameters)
        scores = numpy.empty(found.shape, numpy.float32)
        self._flat.compute_distance_subset(
            len(queries),
            faiss.swig_ptr(queries),
            candidates,
            faiss.swig_ptr(scores),
            faiss.swig_ptr(found),
        )
        scores, found = ranked(scores, found)
        return scores[:, :n], found[:, :n]
