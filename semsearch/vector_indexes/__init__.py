"""Vector indexes: unit vectors by id in a file, searched by inner product.

This module chooses the kind of index: `flat` compares every vector, `ivf` is approximate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError, check_number, shown
from semsearch.protocols import Matrix

#: Ids of vectors, shape (n,).
Ids: TypeAlias = NDArray[numpy.int64]

#: Ids, ascending over all blocks, with their unit vectors, shape (n, dimension).
Blocks: TypeAlias = Iterable[tuple[Ids, Matrix]]

AUTO, FLAT, IVF = "auto", "flat", "ivf"

#: Up to this many numbers (50,000 vectors of MiniLM), exact search takes milliseconds.
FLAT_NUMBERS = 50_000 * 384

#: Fewer vectors are not enough to train lists and short codes.
MIN_IVF_VECTORS = 1000


class IndexType(NamedTuple):
    """The requested type of vector index.

    Args:
        kind: ``flat``, ``ivf``, or ``auto``: flat as long as exact search is fast, then ivf.
        recall: the recall@10 for which ivf is tuned.
    """

    kind: str = AUTO
    recall: float = 0.98

    def checked(self) -> IndexType:
        """Validate it.

        Raises:
            ArgumentError: the kind or the recall is invalid.
        """
        if self.kind not in (AUTO, FLAT, IVF):
            raise ArgumentError(f"index type must be auto, flat or ivf, not {shown(self.kind)}")
        return self._replace(recall=check_number("recall", self.recall, 0, 1))


def chosen_kind(wanted: IndexType, count: int, dimension: int) -> str:
    """``flat`` or ``ivf``, for this number of vectors."""
    is_small = wanted.kind == AUTO and count * dimension <= FLAT_NUMBERS
    return FLAT if wanted.kind == FLAT or is_small or count < MIN_IVF_VECTORS else IVF
