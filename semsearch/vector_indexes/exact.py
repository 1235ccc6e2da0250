"""FAISS's exact vectors: built in place, and compared with queries one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes.protocol import Blocks, Ids

#: A search of fewer multiplications (some milliseconds) is single-threaded: waiting for threads
#: takes as long as they save and, on a busy machine, up to fifty times as long. So is that for one
#: query: FAISS has a thread for each, and with more of them one alone takes twice as long.
ONE_THREAD_PRODUCTS = 30_000_000

#: The score of what is not there, as FAISS has it.
NO_SCORE = float(numpy.finfo(numpy.float32).min)

#: Up to this share of the vectors, those allowed are copied out and compared alone.
FEW_ALLOWED = 0.02


class ExactVectors:
    """Unit vectors in the order of their ids.

    Args:
        ids: ascending, shape (n,).
        flat: FAISS's flat index of their vectors.

    Raises:
        ValueError: the ids are not in ascending order, or not one a vector.
    """

    def __init__(self, ids: Ids, flat: Any) -> None:
        import faiss

        if (ids[1:] <= ids[:-1]).any():
            raise ValueError("has ids that are not in ascending order")
        if len(ids) != flat.ntotal:
            raise ValueError("does not have one vector for each id")
        self.ids = ids
        self.flat = flat
        self._last_places: tuple[Ids, Ids] | None = None
        #: A view of the file, shape (n, dimension).
        self.matrix: Matrix = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(
            flat.ntotal, flat.d
        )

    @classmethod
    def of(cls, dimension: int, count: int, blocks: Blocks) -> ExactVectors:
        """The vectors of blocks, in memory once."""
        import faiss

        flat = faiss.IndexFlatIP(dimension)
        flat.codes.resize(count * dimension * 4)
        flat.ntotal = count
        matrix = faiss.rev_swig_ptr(flat.get_xb(), count * dimension).reshape(count, dimension)
        ids = numpy.empty(count, numpy.int64)
        filled = 0
        for some, rows in blocks:
            ids[filled : filled + len(some)] = some
            matrix[filled : filled + len(some)] = rows
            filled += len(some)
        return cls(ids, flat)

    def places(self, allowed: Ids) -> Ids:
        """Where those of these ids stand that are here.

        Args:
            allowed: sorted. What was found for it is remembered: it must not be changed.
        """
        if not len(self.ids):
            return numpy.empty(0, numpy.int64)
        last = self._last_places
        if last is not None and last[0] is allowed:
            return last[1]
        found: Ids = numpy.searchsorted(self.ids, allowed)
        found = found[: numpy.searchsorted(found, len(self.ids))]
        kept: Ids = found[self.ids[found] == allowed[: len(found)]]
        self._last_places = allowed, kept
        return kept

    def named(self, places: Ids) -> Ids:
        """The ids at these places; -1 stays."""
        if not len(self.ids):
            return numpy.full(places.shape, -1, numpy.int64)
        found: Ids = numpy.where(places < 0, -1, self.ids[places])
        return found

    def search(self, queries: Matrix, n: int, places: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest of each query: cosines and places, both of shape (m, n).

        Args:
            queries: shape (m, dimension).
            n: how many; where there are fewer, the place is -1.
            places: only these, sorted; None allows all.
        """
        import faiss

        if places is not None and len(places) <= FEW_ALLOWED * len(self.ids):
            return self._search_few(queries, n, places)
        parameters = None
        if places is not None:
            parameters = faiss.SearchParameters(sel=selector(places, len(self.ids)))
        is_small = len(queries) == 1 or queries.size * len(self.ids) <= ONE_THREAD_PRODUCTS
        with _one_thread() if is_small else nullcontext():
            found: tuple[Matrix, Ids] = self.flat.search(queries, n, params=parameters)
        return found

    def _search_few(self, queries: Matrix, n: int, places: Ids) -> tuple[Matrix, Ids]:
        scores = numpy.full((len(queries), n), NO_SCORE, numpy.float32)
        found = numpy.full((len(queries), n), -1, numpy.int64)
        cosines = queries @ self.matrix[places].T
        kept = min(n, len(places))
        best = numpy.argpartition(-cosines, kept - 1, axis=1)[:, :kept] if kept else None
        if best is not None:
            values = numpy.take_along_axis(cosines, best, axis=1)
            order = numpy.argsort(-values, axis=1)
            scores[:, :kept] = numpy.take_along_axis(values, order, axis=1)
            found[:, :kept] = places[numpy.take_along_axis(best, order, axis=1)]
        return scores, found


def selector(places: Ids, count: int) -> Any:
    """FAISS's selection of some of `count` vectors; it keeps the bits that it looks at."""
    import faiss

    bits = numpy.zeros(count, bool)
    bits[places] = True
    return faiss.IDSelectorBitmap(numpy.packbits(bits, bitorder="little"))


@contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS computes on the calling thread alone; what other threads use, it leaves as it is."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
