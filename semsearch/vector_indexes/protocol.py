"""What a kind of vector index has to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

#: Ids of vectors, shape (n,).
Ids = NDArray[numpy.int64]

#: Ids, ascending over all blocks, and their unit vectors, shape (n, dimension).
Blocks: TypeAlias = Iterable[tuple[Ids, Matrix]]


class VectorIndex(Protocol):
    """Unit vectors by id."""

    @property
    def ids(self) -> Ids:
        """The ids, ascending."""

    @property
    def dimension(self) -> int:
        """Width of the vectors."""

    @property
    def plan(self) -> str:
        """A description of how it searches."""

    def __len__(self) -> int:
        """How many vectors there are."""

    @classmethod
    def build(
        cls, kind: str, dimension: int, count: int, blocks: Callable[[], Blocks], recall: float
    ) -> Self:
        """An index of vectors.

        Args:
            kind: one of those that this class knows; see `semsearch.vector_indexes.choice`.
            dimension: their width.
            count: how many there are.
            blocks: gives them, as often as it is called.
            recall: what to tune the search for, of the 10 nearest.
        """

    @classmethod
    def is_header(cls, data: bytes) -> bool:
        """Whether a file that begins with these 64 bytes is one of this kind."""

    @classmethod
    def open(cls, file: str) -> Self:
        """The index in a file, mapped into memory.

        Raises:
            ValueError: the file holds something else; the message continues "FILE …".
        """

    def save(self, file: Path) -> None:
        """Write the index.

        Raises:
            OSError: the file cannot be written; or RuntimeError, where FAISS writes it.
        """

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest vectors of each query: cosines and ids, both of shape (m, n).

        Args:
            queries: unit vectors, shape (m, dimension).
            n: how many; places that cannot be filled hold the id -1.
            allowed: only these ids, sorted; None allows all.
        """

    def exact_search(self, queries: Matrix, n: int) -> tuple[Matrix, Ids]:
        """The same by comparing each vector with the query, whatever the kind."""

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors of some of its ids, as they were given, shape (len(ids), dimension)."""
