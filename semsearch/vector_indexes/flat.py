"""The flat index: every vector is compared with the query. Exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes.protocol import Ids

#: A search of fewer multiplications (some milliseconds) is single-threaded: waiting for threads
#: takes as long as they save and, on a busy machine, up to fifty times as long.
ONE_THREAD_PRODUCTS = 10_000_000

#: Where FAISS's file of an index with ids says what it is within: behind four letters for itself,
#: its width, its length, two fillers, a flag and its metric.
_FLAT_KIND_AT = 4 + 4 + 8 + 8 + 8 + 1 + 4


class FlatIndex:
    """FAISS's flat index of inner products, with ids.

    Args:
        index: FAISS's.

    Raises:
        ValueError: `index` is of another type or metric, or its ids are not in ascending order.
    """

    kind: ClassVar[str] = "flat"

    def __init__(self, index: Any) -> None:
        import faiss

        if type(index) is not faiss.IndexIDMap:
            raise ValueError("is not an index with ids")
        flat: Any = faiss.downcast_index(index.index)
        if type(flat) not in (faiss.IndexFlat, faiss.IndexFlatIP) or {
            index.metric_type,
            flat.metric_type,
        } != {faiss.METRIC_INNER_PRODUCT}:
            raise ValueError("is not a flat index of inner products")
        self.ids: Ids = faiss.vector_to_array(index.id_map)
        if (index.d, index.ntotal, len(self.ids)) != (flat.d, flat.ntotal, flat.ntotal):
            raise ValueError("does not have one vector for each id")
        if (numpy.diff(self.ids) <= 0).any():
            raise ValueError("has ids that are not in ascending order")
        self._index = index
        #: A view of the file.
        self._matrix: Matrix = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(
            flat.ntotal, flat.d
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """Width of its vectors."""
        return int(self._index.d)

    @classmethod
    def build(cls, dimension: int, blocks: Iterable[tuple[Ids, Matrix]]) -> Self:
        """An index of vectors; see `VectorIndex`."""
        import faiss

        index = faiss.IndexIDMap(faiss.IndexFlatIP(dimension))
        for ids, matrix in blocks:
            index.add_with_ids(matrix, ids)
        return cls(index)

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file begins as one of this kind."""
        return (data[:4], data[_FLAT_KIND_AT : _FLAT_KIND_AT + 4]) == (b"IxMp", b"IxFI")

    @classmethod
    def open(cls, file: str) -> Self:
        """The index in a file, mapped into memory; see `VectorIndex`."""
        import faiss

        return cls(faiss.read_index(file, faiss.IO_FLAG_MMAP_IFC))

    def save(self, file: Path) -> None:
        """Write the index; see `VectorIndex`."""
        import faiss

        faiss.write_index(self._index, str(file))

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query; see `VectorIndex`."""
        import faiss

        parameters = None
        if allowed is not None:
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))
        is_small = queries.size * len(self) <= ONE_THREAD_PRODUCTS
        with _one_thread() if is_small else nullcontext():
            scores, ids = self._index.search(queries, n, params=parameters)
        return scores, ids

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors of some of its ids, shape (len(ids), dimension)."""
        found: Matrix = self._matrix[numpy.searchsorted(self.ids, ids)]
        return found

    @staticmethod
    def memory_bytes(count: int, dimension: int) -> int:
        """Four bytes a number, eight an id."""
        return count * (4 * dimension + 8)


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
