"""The flat index: every vector is compared with the query. Exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from semsearch.protocols import Matrix
from semsearch.vector_indexes.exact import ExactVectors
from semsearch.vector_indexes.faiss_index import FaissIndex, inner_kind
from semsearch.vector_indexes.protocol import Blocks, Ids


class FlatIndex(FaissIndex):
    """FAISS's flat index of inner products, with ids.

    Args:
        index: FAISS's.

    Raises:
        ValueError: `index` is of another type or metric, or its ids are not in ascending order.
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
        """An index of vectors; see `VectorIndex`."""
        del kind, recall  # there is one, which finds all
        exact = ExactVectors.of(dimension, count, blocks())
        return cls.over(exact.flat, exact.ids)

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file begins as one of this kind."""
        return inner_kind(data) == b"IxFI"

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query; see `VectorIndex`."""
        places = None if allowed is None else self._exact.places(allowed)
        scores, found = self._exact.search(queries, n, places)
        return scores, self._exact.named(found)
