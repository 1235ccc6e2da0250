"""What a kind of vector index has to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

#: Ids of vectors, shape (n,).
Ids = NDArray[numpy.int64]


class VectorIndex(Protocol):
    """Unit vectors by id."""

    kind: ClassVar[str]

    @property
    def ids(self) -> Ids:
        """The ids, ascending."""

    @property
    def dimension(self) -> int:
        """Width of the vectors."""

    def __len__(self) -> int:
        """How many vectors there are."""

    @classmethod
    def build(cls, dimension: int, blocks: Iterable[tuple[Ids, Matrix]]) -> Self:
        """An index of vectors.

        Args:
            dimension: their width.
            blocks: ids, ascending over all blocks, and unit vectors, shape (n, dimension).
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
        """The `n` nearest vectors of each query: scores and ids, both of shape (m, n).

        Args:
            queries: unit vectors, shape (m, dimension).
            n: how many; places that cannot be filled hold the id -1.
            allowed: only these ids, sorted; None allows all.
        """

    def vectors(self, ids: Ids) -> Matrix:
        """The vectors of some of its ids, as they were given, shape (len(ids), dimension)."""

    @staticmethod
    def memory_bytes(count: int, dimension: int) -> int:
        """What an index of so many vectors takes in memory and on disk."""
