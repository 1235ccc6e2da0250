"""Approximate indexes: FAISS finds candidates by their codes, exact vectors rank them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes.exact import FEW_ALLOWED, NO_SCORE, ExactVectors, selector
from semsearch.vector_indexes.faiss_index import FaissIndex, inner_kind
from semsearch.vector_indexes.protocol import Blocks, Ids
from semsearch.vector_indexes.recall import NEIGHBOURS, RecallTest

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
