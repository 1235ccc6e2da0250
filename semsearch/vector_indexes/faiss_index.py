"""What all kinds that FAISS keeps in a file have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy

from semsearch.protocols import Matrix
from semsearch.vector_indexes.exact import ExactVectors
from semsearch.vector_indexes.protocol import Ids

#: Where FAISS's file of an index with ids says what it is within: behind four letters for itself,
#: its width, its length, two fillers, a flag and its metric.
_INNER_KIND_AT = 4 + 4 + 8 + 8 + 8 + 1 + 4


class FaissIndex:
    """Ids over an index of FAISS that has the exact vectors in it.

    Args:
        index: FAISS's ``IndexIDMap``.
        parts: that index and those in it, all of inner products and of the same vectors.
        flat: the one with the exact vectors.

    Raises:
        ValueError: they are not, or the ids are not in ascending order.
    """

    def __init__(self, index: Any, parts: tuple[Any, ...], flat: Any) -> None:
        import faiss

        if type(flat) not in (faiss.IndexFlat, faiss.IndexFlatIP) or {
            part.metric_type for part in (index, *parts)
        } != {faiss.METRIC_INNER_PRODUCT}:
            raise ValueError("is not an index of exact vectors by inner products")
        if len({(part.d, part.ntotal) for part in (index, *parts)}) > 1:
            raise ValueError("does not have one vector for each id")
        self._index = index
        self._parts = parts  # FAISS refers to them
        self._exact = ExactVectors(faiss.vector_to_array(index.id_map), flat)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> Ids:
        """The ids, ascending."""
        return self._exact.ids

    @property
    def dimension(self) -> int:
        """Width of its vectors."""
        return int(self._index.d)

    @classmethod
    def over(cls, inner: Any, ids: Ids) -> Self:
        """The index of these ids over FAISS's index of their vectors."""
        import faiss

        inner.ntotal = 0  # it is wrapped as an empty one, which FAISS asks for
        index = faiss.IndexIDMap(inner)
        inner.ntotal = len(ids)
        faiss.copy_array_to_vector(ids, index.id_map)
        index.ntotal = len(ids)
        return cls(index)  # type: ignore[call-arg]

    @classmethod
    def open(cls, file: str) -> Self:
        """The index in a file, mapped into memory; see `VectorIndex`."""
        import faiss

        index = faiss.read_index(file, faiss.IO_FLAG_MMAP_IFC)
        if type(index) is not faiss.IndexIDMap:
            raise ValueError("is not an index with ids")
        return cls(index)  # type: ignore[call-arg]

    def save(self, file: Path) -> None:
        """Write the index; see `VectorIndex`."""
        import faiss

        faiss.write_index(self._index, str(file))

    def exact_search(self, queries: Matrix, n: int) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query, all compared; see `VectorIndex`."""
        scores, places = self._exact.search(queries, n)
        return scores, self._exact.named(places)

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors of some of its ids, shape (len(ids), dimension)."""
        found: Matrix = self._exact.matrix[numpy.searchsorted(self.ids, ids)]
        return found


def inner_kind(data: bytes) -> bytes:
    """What FAISS calls the index within one with ids, by the file's first bytes."""
    return data[_INNER_KIND_AT : _INNER_KIND_AT + 4] if data[:4] == b"IxMp" else b""
