"""The flat index, which compares every vector with the query; the base of the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import faiss
import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes import Blocks, Ids

#: Scores are rounded to this many digits, and equal ones ordered by id.
DIGITS = 6

#: Searches with fewer multiplications (some milliseconds) are single-threaded: waiting for threads
#: takes as long as they save. So are searches for one query: FAISS uses a thread per query.
ONE_THREAD_PRODUCTS = 30_000_000

#: Up to this share of allowed vectors, they are copied and compared separately.
FEW_ALLOWED = 0.02

#: FAISS passes names in UTF-8, which Windows takes as of its own code page.
_OPENS_ONLY_ASCII = os.name == "nt"


class VectorIndex:
    """Unit vectors by id, in a FAISS index with ids.

    Args:
        index: FAISS's ``IndexIDMap``, with ascending ids.
    """

    def __init__(self, index: Any) -> None:
        self._index = index  # keeps its parts alive for FAISS
        inner = faiss.downcast_index(index.index)
        self._flat = faiss.downcast_index(getattr(inner, "refine_index", inner))
        #: The ids, ascending.
        self.ids: Ids = faiss.vector_to_array(index.id_map)
        #: A view of the vectors in the order of their ids, shape (n, dimension).
        self.matrix = matrix_of(self._flat)
        self._last_places: tuple[Ids, Ids] | None = None

    @classmethod
    def build(cls, dimension: int, count: int, blocks: Blocks, recall: float = 1) -> Self:
        """Build an index of `count` vectors; `recall` tunes an approximate search."""
        del recall
        return cls._over(*filled(dimension, count, blocks))

    @classmethod
    def _over(cls, inner: Any, ids: Ids) -> Self:
        """An index with these ids over a FAISS index of their vectors."""
        inner.ntotal = 0  # FAISS only wraps an empty index
        index = faiss.IndexIDMap(inner)
        inner.ntotal = len(ids)
        faiss.copy_array_to_vector(ids, index.id_map)
        index.ntotal = len(ids)
        return cls(index)

    @classmethod
    def open(cls, file: Path) -> Self:
        """Open the index in a file, memory-mapped.

        Raises:
            RuntimeError: FAISS cannot read the file.
        """
        if _OPENS_ONLY_ASCII and not str(file).isascii():
            with file.open("rb") as stream:
                return cls(faiss.read_index(faiss.PyCallbackIOReader(stream.read)))
        return cls(faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC))

    def save(self, file: Path) -> None:
        """Write the index.

        Raises:
            OSError: the file cannot be written.
        """
        with file.open("wb") as stream:  # FAISS itself opens only files with a name in UTF-8
            faiss.write_index(self._index, faiss.PyCallbackIOWriter(stream.write))

    def __len__(self) -> int:
        return len(self.ids)

    def measured_recall(self) -> float:
        """The recall@10 of a search, between 0 and 1."""
        return 1.0

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors with these ids, unchanged, shape (len(ids), dimension)."""
        found: Matrix = self.matrix[numpy.searchsorted(self.ids, ids)]
        return found

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query: cosines and ids, both of shape (m, n).

        Cosines are rounded to six digits; equal ones are ordered by id.

        Args:
            queries: unit vectors, shape (m, dimension).
            n: the number of vectors; missing results have the id -1.
            allowed: sorted ids of the allowed vectors; None allows all.
        """
        return self.exact_search(queries, n, allowed)

    def exact_search(
        self, queries: Matrix, n: int, allowed: Ids | None = None
    ) -> tuple[Matrix, Ids]:
        """`search` by comparing every vector with the query, whatever the kind."""
        places = None if allowed is None else self._places(allowed)
        if places is None:
            scores, found = _nearest(self._flat, queries, n)
        elif len(places) > FEW_ALLOWED * len(self):
            scores, found = _nearest(self._flat, queries, n, selector(places, len(self)))
        else:
            few = faiss.IndexFlatIP(self.matrix.shape[1])
            few.add(self.matrix[places])
            scores, found = _nearest(few, queries, n)
            found = at(places, found)
        return scores, at(self.ids, found)

    def _places(self, allowed: Ids) -> Ids:
        """The positions of those of these ids that are in the index.

        Args:
            allowed: sorted. The result is cached for this array, which must not be modified.
        """
        if self._last_places is None or self._last_places[0] is not allowed:
            places: Ids = numpy.searchsorted(self.ids, allowed)
            places = places[: numpy.searchsorted(places, len(self.ids))]
            places = places[self.ids[places] == allowed[: len(places)]]
            self._last_places = allowed, places
        return self._last_places[1]


def filled(dimension: int, count: int, blocks: Blocks) -> tuple[Any, Ids]:
    """FAISS's flat index of the vectors of blocks, without a second copy in memory; their ids."""
    flat = faiss.IndexFlatIP(dimension)
    flat.codes.resize(count * dimension * 4)
    flat.ntotal = count
    matrix, ids = matrix_of(flat), numpy.empty(count, numpy.int64)
    start = 0
    for block_ids, rows in blocks:
        place = slice(start, start + len(block_ids))
        ids[place], matrix[place] = block_ids, rows
        start = place.stop
    return flat, ids


def matrix_of(flat: Any) -> Matrix:
    """A view of the vectors of FAISS's flat index, shape (n, dimension)."""
    numbers: Matrix = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
    return numbers.reshape(flat.ntotal, flat.d)


def at(ids: Ids, places: Ids) -> Ids:
    """The ids at these positions; -1 stays -1."""
    found: Ids = numpy.where(places < 0, -1, ids[places]) if len(ids) else places
    return found


def _nearest(flat: Any, queries: Matrix, n: int, selected: Any = None) -> tuple[Matrix, Ids]:
    """The `n` best positions of each query in FAISS's flat index, among the selected ones.

    Where the next score equals the last one, all vectors with at least that score are searched, and
    the first are taken.
    """
    parameters = faiss.SearchParameters(sel=selected) if selected else None
    is_small = len(queries) == 1 or queries.size * flat.ntotal <= ONE_THREAD_PRODUCTS
    with _one_thread() if is_small else nullcontext():
        scores, places = ranked(*flat.search(queries, n + 1, params=parameters))
    is_cut = (scores[:, n - 1] == scores[:, n]) & (places[:, n] >= 0)
    scores, places = scores[:, :n], places[:, :n]
    for row in numpy.flatnonzero(is_cut):
        least = float(scores[row, -1]) - 10**-DIGITS  # below all scores that round to it
        with _one_thread():
            _, tied, tied_places = flat.range_search(queries[[row]], least, params=parameters)
        best, best_places = ranked(tied[None], tied_places[None])
        scores[row], places[row] = best[0, :n], best_places[0, :n]
    return scores, places


def ranked(scores: Matrix, places: Ids) -> tuple[Matrix, Ids]:
    """Rounded scores with their positions or ids, best first; equal scores in the order of these.

    Args:
        scores: shape (m, n).
        places: shape (m, n); missing ones, -1, come last, with a score of -inf.
    """
    rounded = numpy.where(places < 0, numpy.float32(-numpy.inf), scores).round(DIGITS)
    order = numpy.lexsort((places, -rounded), axis=1)
    return (
        numpy.take_along_axis(rounded, order, axis=1),
        numpy.take_along_axis(places, order, axis=1),
    )


def selector(places: Ids, count: int) -> Any:
    """FAISS's selector of the vectors at some positions; it owns its bitmap."""
    bits = numpy.zeros(count, bool)
    bits[places] = True
    return faiss.IDSelectorBitmap(numpy.packbits(bits, bitorder="little"))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let FAISS compute on the calling thread only; other threads are not affected."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
