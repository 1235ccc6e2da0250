"""Approximate indexes, with measured recall: candidates by short codes, ranked by exact vectors."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix
from semsearch.vector_indexes.flat import (
    FEW_ALLOWED,
    NO_SCORE,
    Blocks,
    ExactVectors,
    FaissIndex,
    Ids,
    VectorIndex,
    inner_kind,
    selector,
)

#: Queries of a recall test, and neighbours per query.
QUERIES = 400
NEIGHBOURS = 10
#: The length of a query's random part, for graphs and for codes; see `RecallTest`.
FAR, NEAR = 2.2, 1.2
#: The standard errors below a mean that reach its lower bound with 95 % confidence.
DEVIATIONS = 1.645
#: The largest rounding difference between equal scores in float32.
ROUNDING = 1e-5


class RecallTest(NamedTuple):
    """Synthetic queries, each with the tenth best score of exact search.

    An index finds the neighbours of its own vectors more easily than those of real queries, which
    lie elsewhere: tuned to a recall of 98 % for its own vectors, HNSW over 107,525 definitions had
    88 % for sentences. So a query lies halfway between two vectors, plus a longer step in a random
    direction. Its length was chosen with four kinds of real queries (words, titles, questions,
    sentences) over definitions and sentences about films; RESULTS.md compares them.

    A neighbour counts as found if its score is at least the tenth best of exact search, so that
    equal vectors are interchangeable.
    """

    queries: Matrix
    least: Matrix  #: of each query, shape (m,)

    @classmethod
    def of(cls, index: VectorIndex, length: float = NEAR, seed: int = 0) -> RecallTest:
        """400 queries of an index, depending on the length of their random part and the seed."""
        random = numpy.random.default_rng(seed)
        one, other = (index.vectors(random.choice(index.ids, QUERIES)) for _ in range(2))
        away = numpy.float32(length) * _directions(one.shape, random)
        queries = _unit(_unit(one + other) + away)
        scores, _ = index.exact_search(queries, min(NEIGHBOURS, len(index)))
        return cls(queries, scores[:, -1])

    def recall(self, index: VectorIndex) -> float:
        """The recall@10 of a search, between 0 and 1: the lower bound with 95 % confidence."""
        scores, found = index.search(self.queries, min(NEIGHBOURS, len(index)))
        return _lower_bound((scores >= self.least[:, None] - ROUNDING) & (found >= 0))


def _lower_bound(is_found: NDArray[numpy.bool]) -> float:
    """The lower bound, with 95 % confidence, of the share of neighbours found.

    Queries of some kinds are harder than others, so the mean of 400 alone would be a guess.

    Args:
        is_found: shape (queries, neighbours).
    """
    shares = is_found.mean(axis=1)
    return max(0.0, float(shares.mean() - DEVIATIONS * shares.std() / math.sqrt(len(shares))))


def _directions(shape: tuple[int, ...], random: numpy.random.Generator) -> Matrix:
    """Random unit vectors."""
    return _unit(random.standard_normal(shape).astype(numpy.float32))


def _unit(matrix: NDArray[Any]) -> Matrix:
    """Normalised rows; zero rows stay zero."""
    norms = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1
    found: Matrix = matrix / norms
    return found


#: The FAISS classes that may be opened.
HNSW_TYPES = ("IndexHNSWSQ", "IndexHNSWFlat")
IVF_TYPES = (
    "IndexIVFFlat",
    "IndexIVFScalarQuantizer",
    "IndexIVFPQ",
    "IndexIVFPQFastScan",
    "IndexIVFRaBitQ",
    "IndexIVFRaBitQFastScan",
)

#: Candidates ranked by exact vectors per requested vector: for codes with at least eight bits per
#: number, and for shorter codes.
CANDIDATES, CANDIDATES_OF_SHORT_CODES = 2, 20

#: Multiples of these numbers to try, ascending.
CANDIDATES_TIMES = (1, 2, 4)
#: The number of candidates grows with this power of the number of neighbours.
GROWTH = 0.7
#: The factor between the efforts tried in tuning.
EFFORT_STEP = 1.3

#: Training vectors per cluster of k-means; FAISS requires 39.
TRAINING_VECTORS_PER_LIST = 40
#: The minimum number of training vectors, for the ranges of quantisers.
TRAINING_VECTORS = 20_000

#: If more than this share of the vectors would be candidates, all are compared.
MANY_CANDIDATES = 0.1

#: Scores computed at once; more do not fit the processor's cache.
SCORES_AT_ONCE = 1 << 18


class RefinedIndex(FaissIndex):
    """HNSW or IVF over codes of the vectors, with the exact vectors in the same file.

    HNSW is Malkov & Yashunin's graph (2018), IVF the inverted file of Sivic & Zisserman (2003) as
    in FAISS (Douze et al. 2024). The effort of a search (efSearch of HNSW, nprobe of IVF) and the
    number of candidates are tuned when the index is built, and stored in its file.

    Args:
        index: FAISS's index: ids over a refinement over an index of codes.

    Raises:
        ValueError: `index` has another type or metric, or its ids are not ascending.
    """

    def __init__(self, index: Any) -> None:
        import faiss

        refine = faiss.downcast_index(index.index)
        if type(refine) not in (faiss.IndexRefine, faiss.IndexRefineFlat):
            raise ValueError("is not an index of codes and vectors")
        base = faiss.downcast_index(refine.base_index)
        flat = faiss.downcast_index(refine.refine_index)
        self._is_hnsw = type(base).__name__ in HNSW_TYPES
        if not self._is_hnsw and type(base).__name__ not in IVF_TYPES:
            raise ValueError("is not an HNSW or IVF index")
        super().__init__(index, (refine, base, flat), flat)
        self._base: Any = base
        self._candidates: float = max(1.0, refine.k_factor)
        self._effort = int(base.hnsw.efSearch if self._is_hnsw else base.nprobe)

    @classmethod
    def build(
        cls, kind: str, dimension: int, count: int, blocks: Callable[[], Blocks], recall: float
    ) -> Self:
        """Build an index of vectors; `kind` is a FAISS factory string. See `VectorIndex`.

        Raises:
            RuntimeError: FAISS cannot build it.
        """
        import faiss

        untrained = faiss.index_factory(dimension, kind, faiss.METRIC_INNER_PRODUCT)
        base = faiss.downcast_index(untrained)
        exact = ExactVectors.of(dimension, count, blocks())
        if not base.is_trained:
            lists = getattr(base, "nlist", 0)
            wanted = max(TRAINING_VECTORS, TRAINING_VECTORS_PER_LIST * lists)
            for part in (base, getattr(base, "pq", base)):
                if hasattr(part, "cp"):
                    part.cp.min_points_per_centroid = 1  # no warnings: the recall is measured
            places = numpy.linspace(0, count - 1, min(wanted, count)).astype(numpy.int64)
            base.train(exact.matrix[places])
        base.add(exact.matrix)
        refine = faiss.IndexRefine(untrained, exact.flat)
        refine.k_factor = CANDIDATES if _has_long_codes(base) else CANDIDATES_OF_SHORT_CODES
        built = cls.over(refine, exact.ids)
        built.tune(recall)
        return built

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file with this header is an index of this kind."""
        return inner_kind(data) == b"IxRF"

    @property
    def plan(self) -> str:
        """A description of how it searches."""
        effort = "efSearch" if self._is_hnsw else "nprobe"
        return f"{'hnsw' if self._is_hnsw else 'ivf'} ({effort} {self._effort})"

    def tune(self, recall: float) -> None:
        """Choose the least effort, then the fewest candidates, that reach a recall@10, if any."""
        reach = self._reach(seed=0)
        efforts = self._efforts()
        place = bisect_left(efforts, True, key=lambda effort: reach(effort) >= recall)
        self._effort = efforts[min(place, len(efforts) - 1)]
        test, fewest = RecallTest.of(self), self._candidates
        for times in CANDIDATES_TIMES:
            self._candidates = fewest * times
            if test.recall(self) >= recall:
                break
        self._parts[0].k_factor = self._candidates
        if self._is_hnsw:
            self._base.hnsw.efSearch = self._effort
        else:
            self._base.nprobe = self._effort

    def measured_recall(self) -> float:
        """The recall@10 for synthetic queries, different from those used for tuning.

        Returns:
            The recall of the effort or that of the candidates, whichever is lower; each is a lower
            bound with 95 % confidence.
        """
        candidates = RecallTest.of(self, seed=1).recall(self)
        return min(candidates, self._reach(seed=1)(self._effort))

    def _reach(self, seed: int) -> Callable[[int], float]:
        """A function that returns the share of the nearest vectors that an effort reaches.

        For a graph, this is the recall of queries far from the vectors. For lists, it is the share
        of the nearest vectors of random directions that are in the lists searched: compared by
        codes, these queries would have a low recall, unlike any real query.
        """
        if self._is_hnsw:
            test = RecallTest.of(self, FAR, seed)

            def by_graph(effort: int) -> float:
                self._effort = effort
                return test.recall(self)

            return by_graph
        count = int(self._base.nlist)
        if count == 1:  # which has all vectors
            return lambda effort: 1.0
        import faiss

        queries = _directions((QUERIES, self.dimension), numpy.random.default_rng(seed))
        _, nearest = self._exact.search(queries, min(NEIGHBOURS, len(self)))
        quantizer = faiss.downcast_index(self._base.quantizer)
        _, own = quantizer.search(self._exact.matrix[nearest.ravel()], 1)
        _, lists = quantizer.search(queries, count)
        ranks = numpy.empty(nearest.shape, numpy.int64)
        for row, (searched, wanted) in enumerate(
            zip(lists, own.reshape(nearest.shape), strict=True)
        ):
            place = numpy.full(count, count)
            searched = searched[searched >= 0]  # a graph over the lists may find fewer
            place[searched] = numpy.arange(len(searched))
            ranks[row] = place[wanted]
        return lambda effort: _lower_bound(ranks < effort)

    def _efforts(self) -> list[int]:
        """The efforts to try, ascending."""
        least, most = (16, 1024) if self._is_hnsw else (1, int(self._base.nlist))
        efforts = [least]
        while efforts[-1] < most:
            efforts.append(min(math.ceil(efforts[-1] * EFFORT_STEP), most))
        return efforts

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query that the index finds; see `VectorIndex`.

        A query with fewer than `n` results is compared with all allowed vectors.
        """
        places = None if allowed is None else self._exact.places(allowed)
        reachable = len(self) if places is None else len(places)
        candidates = self._candidates_of(n)
        if candidates >= MANY_CANDIDATES * reachable or reachable <= FEW_ALLOWED * len(self):
            scores, found = self._exact.search(queries, n, places)
            return scores, self._exact.named(found)
        chosen = None if places is None else selector(places, len(self))
        scores = numpy.empty((len(queries), n), numpy.float32)
        found = numpy.empty((len(queries), n), numpy.int64)
        step = max(1, SCORES_AT_ONCE // candidates)
        for start in range(0, len(queries), step):
            rows = slice(start, start + step)
            scores[rows], found[rows] = self._refined(queries[rows], n, candidates, chosen)
        lacking = numpy.flatnonzero((found < 0).any(axis=1))
        if len(lacking):
            scores[lacking], found[lacking] = self._exact.search(queries[lacking], n, places)
        return scores, self._exact.named(found)

    def _candidates_of(self, n: int) -> int:
        """The number of candidates ranked by exact vectors.

        For more neighbours than it is tuned for, fewer per neighbour suffice: with a million
        vectors, the recall for 20, 50 and 100 neighbours equalled that for 10.
        """
        more = max(n, NEIGHBOURS) / NEIGHBOURS
        return max(n, math.ceil(NEIGHBOURS * self._candidates * math.pow(more, GROWTH)))

    def _refined(self, queries: Matrix, n: int, candidates: int, chosen: Any) -> tuple[Matrix, Ids]:
        import faiss

        queries = numpy.ascontiguousarray(queries)
        if self._is_hnsw:
            effort = max(self._effort, candidates)
            parameters = faiss.SearchParametersHNSW(efSearch=effort, sel=chosen)
        else:
            parameters = faiss.SearchParametersIVF(nprobe=self._effort, sel=chosen)
        _, found = self._base.search(queries, candidates, params=parameters)
        scores = numpy.empty(found.shape, numpy.float32)
        self._exact.flat.compute_distance_subset(
            len(queries),
            faiss.swig_ptr(queries),
            candidates,
            faiss.swig_ptr(scores),
            faiss.swig_ptr(found),
        )
        scores[found < 0] = NO_SCORE
        best = numpy.argpartition(-scores, n - 1, axis=1)[:, :n]
        order = numpy.argsort(-numpy.take_along_axis(scores, best, axis=1), axis=1)
        best = numpy.take_along_axis(best, order, axis=1)
        return (
            numpy.take_along_axis(scores, best, axis=1),
            numpy.take_along_axis(found, best, axis=1),
        )


def _has_long_codes(base: Any) -> bool:
    """Whether a code has at least one byte per number."""
    storage = getattr(base, "storage", base)
    return int(getattr(storage, "code_size", base.d * 4)) >= int(base.d)
