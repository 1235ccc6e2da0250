"""Approximate indexes, with measured recall: candidates by short codes, ranked by exact vectors."""

from __future__ import annotations

import math
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

#: How many queries an index is asked, and for how many neighbours each.
QUERIES = 400
NEIGHBOURS = 10
#: How long a query's random part is, beside 1 for what lies between two vectors.
NOISE = numpy.float32(1.4)
#: Scores this near are equal; float32 adds up in any order.
ROUNDING = 1e-5


class RecallTest(NamedTuple):
    """Queries, each with the tenth best score that there is.

    What an index holds, it finds more easily than what people ask for: tuned to find 98 % of the
    neighbours of its own vectors, HNSW over 107,525 definitions found 88 % of those of sentences.
    So a query here lies between two vectors, and 1.4 times as far in a random direction, which
    makes its nearest vector somewhat farther from it than definitions are from sentences. Recalls
    of these queries and of sentences differ by at most 0.01 around 0.98, for IVF and HNSW, among
    107,525 vectors and among a million (`scripts/bench/scale`).

    A neighbour counts as found when its score is no worse than the tenth best of exact search, so
    that equal vectors may stand for each other.
    """

    queries: Matrix
    least: Matrix  #: of each query, shape (m,)

    @classmethod
    def of(cls, index: VectorIndex, seed: int = 0) -> RecallTest:
        """400 queries between the vectors of an index; other ones by another seed."""
        random = numpy.random.default_rng(seed)
        near, far = (index.vectors(random.choice(index.ids, QUERIES)) for _ in range(2))
        noise = random.standard_normal(near.shape).astype(numpy.float32)
        queries = _unit(_unit(near + far / 2) + NOISE * _unit(noise))
        scores, _ = index.exact_search(queries, min(NEIGHBOURS, len(index)))
        return cls(queries, scores[:, -1])

    def recall(self, index: VectorIndex) -> float:
        """The share of the 10 nearest that a search finds, between 0 and 1."""
        scores, found = index.search(self.queries, min(NEIGHBOURS, len(index)))
        near = (scores >= self.least[:, None] - ROUNDING) & (found >= 0)
        return float(near.mean())


def measured_recall(index: VectorIndex) -> float:
    """The share of the 10 nearest neighbours that a search finds, of 400 queries.

    They are not those that the search was tuned with.

    Returns:
        Between 0 and 1; 1 for an empty index.
    """
    return RecallTest.of(index, seed=1).recall(index) if len(index) else 1.0


def _unit(matrix: NDArray[Any]) -> Matrix:
    """Its rows at unit length; a zero row, of vectors that cancel each other out, stays."""
    norms = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1
    found: Matrix = matrix / norms
    return found


#: FAISS's classes of the kinds that may be opened.
HNSW_TYPES = ("IndexHNSWSQ", "IndexHNSWFlat")
IVF_TYPES = (
    "IndexIVFFlat",
    "IndexIVFScalarQuantizer",
    "IndexIVFPQ",
    "IndexIVFPQFastScan",
    "IndexIVFRaBitQ",
    "IndexIVFRaBitQFastScan",
)

#: How many candidates are ranked again for each vector that is wanted: by codes of eight bits a
#: number, and by shorter ones.
CANDIDATES, CANDIDATES_OF_SHORT_CODES = 2, 20

#: How many times as many, where these are not enough.
CANDIDATES_TIMES = (1, 2, 4)
#: With which power of the number of neighbours that of candidates grows.
GROWTH = 0.7
#: With which power of the neighbours' distance, in ranks, that of searched lists grows.
FARTHER = 0.4
#: By what efforts grow until one is enough.
EFFORT_STEP = 1.3

#: How many vectors k-means is trained with for each of its clusters; FAISS asks for 39.
TRAINING_VECTORS_PER_LIST = 40
#: How many the ranges of a quantiser are trained with, at least.
TRAINING_VECTORS = 20_000

#: Where more than this share of the vectors would be candidates, all are compared.
MANY_CANDIDATES = 0.1

#: How many scores are computed at once.
SCORES_AT_ONCE = 1 << 22


class RefinedIndex(FaissIndex):
    """HNSW or IVF over codes of the vectors, and the vectors themselves in the same file.

    HNSW is Malkov & Yashunin's graph (2018), IVF the inverted file of Sivic & Zisserman (2003) as
    in FAISS (Douze et al. 2024). How far a search goes (efSearch of HNSW, nprobe of IVF) is tuned
    when the index is built, and kept in its file.

    Args:
        index: FAISS's: ids, over a refinement, over the index of the codes.

    Raises:
        ValueError: `index` is of another type or metric, or its ids are not in ascending order.
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
        """An index of vectors; `kind` is what FAISS's `index_factory` reads. See `VectorIndex`.

        Raises:
            RuntimeError: FAISS cannot build it.
        """
        import faiss

        made = faiss.index_factory(dimension, kind, faiss.METRIC_INNER_PRODUCT)
        base = faiss.downcast_index(made)
        exact = ExactVectors.of(dimension, count, blocks())
        if not base.is_trained:
            lists = getattr(base, "nlist", 0)
            wanted = max(TRAINING_VECTORS, TRAINING_VECTORS_PER_LIST * lists)
            places = numpy.linspace(0, count - 1, min(wanted, count)).astype(numpy.int64)
            base.train(exact.matrix[places])
        base.add(exact.matrix)
        refine = faiss.IndexRefine(made, exact.flat)
        refine.k_factor = CANDIDATES if _has_long_codes(base) else CANDIDATES_OF_SHORT_CODES
        built = cls.over(refine, exact.ids)
        built.tune(recall)
        return built

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file begins as one of this kind."""
        return inner_kind(data) == b"IxRF"

    @property
    def plan(self) -> str:
        """A description of how it searches."""
        effort = "efSearch" if self._is_hnsw else "nprobe"
        return f"{'hnsw' if self._is_hnsw else 'ivf'} ({effort} {self._effort})"

    def tune(self, recall: float) -> None:
        """Search no further than it takes to find that share of the 10 nearest, if it can.

        Where codes tell too little, a search that goes further finds no more: then more
        candidates are ranked again.
        """
        test = RecallTest.of(self)
        fewest, most = self._candidates, 1024 if self._is_hnsw else int(self._base.nlist)
        for times in CANDIDATES_TIMES:
            self._candidates = fewest * times
            is_last = times == CANDIDATES_TIMES[-1]
            if self._tune_effort(test, recall, most if is_last else most // 4):
                break
        self._parts[0].k_factor = self._candidates
        if self._is_hnsw:
            self._base.hnsw.efSearch = self._effort
        else:
            self._base.nprobe = self._effort

    def _tune_effort(self, test: RecallTest, recall: float, most: int) -> bool:
        """Whether an effort up to `most` was enough."""
        self._effort = 16 if self._is_hnsw else 1
        while test.recall(self) < recall:
            if self._effort >= most:
                return False
            self._effort = min(math.ceil(self._effort * EFFORT_STEP), most)
        return True

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query, as far as the index finds them.

        A query of which it finds fewer than `n` is compared with all that are allowed. See
        `VectorIndex`.
        """
        places = None if allowed is None else self._exact.places(allowed)
        reachable = len(self) if places is None else len(places)
        candidates = self._candidates_of(n)
        if candidates >= MANY_CANDIDATES * reachable or reachable <= FEW_ALLOWED * len(self):
            scores, found = self._exact.search(queries, n, places)
            return scores, self._exact.named(found)
        chosen = None if places is None else selector(places, len(self))
        share = reachable / len(self)
        scores = numpy.empty((len(queries), n), numpy.float32)
        found = numpy.empty((len(queries), n), numpy.int64)
        step = max(1, SCORES_AT_ONCE // candidates)
        for start in range(0, len(queries), step):
            some = slice(start, start + step)
            scores[some], found[some] = self._refined(queries[some], n, candidates, chosen, share)
        lacking = numpy.flatnonzero((found < 0).any(axis=1))
        if len(lacking):
            scores[lacking], found[lacking] = self._exact.search(queries[lacking], n, places)
        return scores, self._exact.named(found)

    def _candidates_of(self, n: int) -> int:
        """How many candidates are ranked again.

        Of more neighbours than it is tuned for, it takes fewer for each of them: among a million
        vectors, those of 20, 50 and 100 were found as those of 10.
        """
        more = max(n, NEIGHBOURS) / NEIGHBOURS
        return max(n, math.ceil(NEIGHBOURS * self._candidates * math.pow(more, GROWTH)))

    def _refined(
        self, queries: Matrix, n: int, candidates: int, chosen: Any, share: float = 1
    ) -> tuple[Matrix, Ids]:
        import faiss

        queries = numpy.ascontiguousarray(queries)
        if self._is_hnsw:
            effort = max(self._effort, candidates)
            parameters = faiss.SearchParametersHNSW(efSearch=effort, sel=chosen)
        else:
            # More neighbours, and the nearest of few that are allowed, are in more lists.
            farther = max(1.0, n / (2 * NEIGHBOURS)) / share
            effort = math.ceil(self._effort * math.pow(farther, FARTHER))
            parameters = faiss.SearchParametersIVF(nprobe=effort, sel=chosen)
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
    """Whether a code has a byte a number, at least."""
    storage = getattr(base, "storage", base)
    return int(getattr(storage, "code_size", base.d * 4)) >= int(base.d)
