"""The interface of vector indexes, and the flat one: every vector is compared with the query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

#: Ids of vectors, shape (n,).
Ids = NDArray[numpy.int64]

#: Ids, ascending over all blocks, with their unit vectors, shape (n, dimension).
Blocks: TypeAlias = Iterable[tuple[Ids, Matrix]]


#: FAISS passes names in UTF-8, which Windows takes as of its own code page.
_OPENS_ONLY_ASCII = os.name == "nt"


class VectorIndex(Protocol):
    """Unit vectors by id."""

    @property
    def ids(self) -> Ids:
        """The ids, ascending."""

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""

    @property
    def plan(self) -> str:
        """A description of how it searches."""

    def __len__(self) -> int:
        """The number of vectors."""

    @classmethod
    def build(
        cls, kind: str, dimension: int, count: int, blocks: Callable[[], Blocks], recall: float
    ) -> Self:
        """Build an index of vectors.

        Args:
            kind: a kind of this class; see `semsearch.vector_indexes`.
            dimension: the dimension of the vectors.
            count: the number of vectors.
            blocks: returns the vectors; may be called several times.
            recall: the recall@10 for which to tune the search.
        """

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file that starts with these 64 bytes is an index of this kind."""

    @classmethod
    def open(cls, file: str) -> Self:
        """Open the index in a file, memory-mapped.

        Raises:
            ValueError: the file is not such an index; the message continues "FILE …".
        """

    def save(self, file: Path) -> None:
        """Write the index.

        Raises:
            OSError: the file cannot be written.
        """

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query: cosines and ids, both of shape (m, n).

        Args:
            queries: unit vectors, shape (m, dimension).
            n: the number of vectors; missing results have the id -1.
            allowed: sorted ids of the allowed vectors; None allows all.
        """

    def exact_search(self, queries: Matrix, n: int) -> tuple[Matrix, Ids]:
        """`search` by comparing every vector with the query, whatever the kind."""

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors with these ids, unchanged, shape (len(ids), dimension)."""

    def measured_recall(self) -> float:
        """The recall@10 of a search, between 0 and 1."""


#: Searches with fewer multiplications (some milliseconds) are single-threaded: waiting for threads
#: takes as long as they save, and up to fifty times as long on a busy machine. So are searches for
#: one query: FAISS uses a thread per query, and one query takes twice as long with more threads.
ONE_THREAD_PRODUCTS = 30_000_000

#: The score of missing results, as in FAISS.
NO_SCORE = float(numpy.finfo(numpy.float32).min)

#: Up to this share of allowed vectors, they are copied and compared separately.
FEW_ALLOWED = 0.02


class ExactVectors:
    """Unit vectors in the order of their ids.

    Args:
        ids: ascending, shape (n,).
        flat: FAISS's flat index of their vectors.

    Raises:
        ValueError: the ids are not ascending, or their number is not that of the vectors.
    """

    def __init__(self, ids: Ids, flat: Any) -> None:
        import faiss

        if (ids[1:] <= ids[:-1]).any():
            raise ValueError("has ids that are not ascending")
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
        """The vectors of blocks, without a second copy in memory."""
        import faiss

        flat = faiss.IndexFlatIP(dimension)
        flat.codes.resize(count * dimension * 4)
        flat.ntotal = count
        matrix = faiss.rev_swig_ptr(flat.get_xb(), count * dimension).reshape(count, dimension)
        ids = numpy.empty(count, numpy.int64)
        filled = 0
        for block_ids, rows in blocks:
            ids[filled : filled + len(block_ids)] = block_ids
            matrix[filled : filled + len(block_ids)] = rows
            filled += len(block_ids)
        return cls(ids, flat)

    def places(self, allowed: Ids) -> Ids:
        """The positions of those of these ids that are in the index.

        Args:
            allowed: sorted. The result is cached for this array, which must not be modified.
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
        """The ids at these positions; -1 stays -1."""
        if not len(self.ids):
            return numpy.full(places.shape, -1, numpy.int64)
        found: Ids = numpy.where(places < 0, -1, self.ids[places])
        return found

    def search(self, queries: Matrix, n: int, places: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query: cosines and positions, both of shape (m, n).

        Args:
            queries: shape (m, dimension).
            n: the number of vectors; missing results have the position -1.
            places: sorted positions of the allowed vectors; None allows all.
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
    """FAISS's selector of the vectors at some positions; it owns its bitmap."""
    import faiss

    bits = numpy.zeros(count, bool)
    bits[places] = True
    return faiss.IDSelectorBitmap(numpy.packbits(bits, bitorder="little"))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let FAISS compute on the calling thread only; other threads are not affected."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


#: The offset of the inner index's type in FAISS's file of an index with ids: after its own type,
#: dimension, length, two fillers, a flag and the metric.
_INNER_KIND_AT = 4 + 4 + 8 + 8 + 8 + 1 + 4


class FaissIndex:
    """A FAISS index with ids that contains the exact vectors.

    Args:
        index: FAISS's ``IndexIDMap``.
        parts: the indexes in it, all with inner products and the same vectors.
        flat: the one with the exact vectors.

    Raises:
        ValueError: the parts do not match, or the ids are not ascending.
    """

    def __init__(self, index: Any, parts: tuple[Any, ...], flat: Any) -> None:
        import faiss

        if type(flat) not in (faiss.IndexFlat, faiss.IndexFlatIP) or {
            part.metric_type for part in (index, *parts)
        } != {faiss.METRIC_INNER_PRODUCT}:
            raise ValueError("is not an index of exact vectors with inner products")
        if len({(part.d, part.ntotal) for part in (index, *parts)}) > 1:
            raise ValueError("does not have one vector for each id")
        self._index = index
        self._parts = parts  # keeps them alive for FAISS
        self._exact = ExactVectors(faiss.vector_to_array(index.id_map), flat)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> Ids:
        """The ids, ascending."""
        return self._exact.ids

    @property
    def matrix(self) -> Matrix:
        """A view of the exact vectors in the order of their ids, shape (n, dimension)."""
        return self._exact.matrix

    @property
    def dimension(self) -> int:
        """The dimension of its vectors."""
        return int(self._index.d)

    @classmethod
    def over(cls, inner: Any, ids: Ids) -> Self:
        """An index with these ids over a FAISS index of their vectors."""
        import faiss

        inner.ntotal = 0  # FAISS only wraps an empty index
        index = faiss.IndexIDMap(inner)
        inner.ntotal = len(ids)
        faiss.copy_array_to_vector(ids, index.id_map)
        index.ntotal = len(ids)
        return cls(index)  # type: ignore[call-arg]

    @classmethod
    def open(cls, file: str) -> Self:
        """Open the index in a file, memory-mapped; see `VectorIndex`."""
        import faiss

        if _OPENS_ONLY_ASCII and not file.isascii():
            with Path(file).open("rb") as stream:
                index = faiss.read_index(faiss.PyCallbackIOReader(stream.read))
        else:
            index = faiss.read_index(file, faiss.IO_FLAG_MMAP_IFC)
        if type(index) is not faiss.IndexIDMap:
            raise ValueError("is not an index with ids")
        return cls(index)  # type: ignore[call-arg]

    def save(self, file: Path) -> None:
        """Write the index; see `VectorIndex`."""
        import faiss

        with file.open("wb") as stream:  # FAISS itself opens only files with a name in UTF-8
            faiss.write_index(self._index, faiss.PyCallbackIOWriter(stream.write))

    def exact_search(self, queries: Matrix, n: int) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query, by comparing all; see `VectorIndex`."""
        scores, places = self._exact.search(queries, n)
        return scores, self._exact.named(places)

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors with these ids, shape (len(ids), dimension)."""
        found: Matrix = self._exact.matrix[numpy.searchsorted(self.ids, ids)]
        return found


def inner_kind(data: bytes) -> bytes:
    """The type of the index inside an index with ids, given the first bytes of its file."""
    return data[_INNER_KIND_AT : _INNER_KIND_AT + 4] if data[:4] == b"IxMp" else b""


class FlatIndex(FaissIndex):
    """FAISS's flat index of inner products, with ids.

    Args:
        index: FAISS's.

    Raises:
        ValueError: `index` has another type or metric, or its ids are not ascending.
    """

    def __init__(self, index: Any) -> None:
        import faiss

        flat = faiss.downcast_index(index.index)
        super().__init__(index, (flat,), flat)

    @property
    def plan(self) -> str:
        """A description of how it searches."""
        return "exact"

    @classmethod
    def build(
        cls, kind: str, dimension: int, count: int, blocks: Callable[[], Blocks], recall: float
    ) -> Self:
        """Build an index of vectors; see `VectorIndex`."""
        del kind, recall  # there is only one kind, with a recall of 1
        exact = ExactVectors.of(dimension, count, blocks())
        return cls.over(exact.flat, exact.ids)

    def measured_recall(self) -> float:
        """1: every vector is compared."""
        return 1.0

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file with this header is an index of this kind."""
        return inner_kind(data) == b"IxFI"

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query; see `VectorIndex`."""
        places = None if allowed is None else self._exact.places(allowed)
        scores, found = self._exact.search(queries, n, places)
        return scores, self._exact.named(found)
