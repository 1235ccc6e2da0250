"""Vector indexes: vectors by id in a file, searched by inner product.

This module chooses the kind, by size and memory or as the user asks; `flat` has the interface.
"""

from __future__ import annotations

import logging
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from semsearch.arguments import check_text, check_whole_number, shown
from semsearch.errors import ArgumentError

if TYPE_CHECKING:
    from semsearch.vector_indexes.flat import VectorIndex

logger = logging.getLogger(__name__)

AUTO, FLAT, HNSW, IVF = "auto", "flat", "hnsw", "ivf"

#: Up to so many numbers (50,000 vectors of MiniLM) exact search takes milliseconds.
FLAT_NUMBERS = 50_000 * 384

#: Of fewer vectors, too little can be learnt for lists and short codes.
IVF_LEAST = 1000

#: What FAISS's `index_factory` calls the two families: a graph, or lists, and then a code.
_FACTORY = re.compile(r"(HNSW|IVF)\d+(_HNSW\d+)?(\([^()]*\))?,[A-Za-z0-9]+(fs|fsr)?")

_LISTS = re.compile(r"^IVF\d+")

#: Links of a node of the graph.
LINKS = 32


class IndexType(NamedTuple):
    """What kind of vector index is asked for.

    Args:
        kind: ``auto``, ``flat``, ``hnsw``, ``ivf`` or what FAISS's `index_factory` reads, of its
            HNSW and IVF families (``IVF4096,PQ96x4fs``).
        recall: the share of the 10 nearest that approximate search is tuned to find.
        memory: how many bytes the codes that are searched may take, beside the exact vectors,
            which are read from the disk. Shorter codes need more of those.
    """

    kind: str = AUTO
    recall: float = 0.98
    memory: int | None = None

    def checked(self) -> IndexType:
        """The same, if it can be met.

        Raises:
            ArgumentError: there is no such kind or recall.
        """
        check_text("the index type", self.kind)
        if self.kind not in (AUTO, FLAT, HNSW, IVF) and not _FACTORY.fullmatch(self.kind):
            raise ArgumentError(
                f"no index type '{self.kind}': auto, flat, hnsw, ivf, or a FAISS factory string "
                "of HNSW or IVF, such as 'IVF4096,PQ96x4fs'"
            )
        if (
            isinstance(self.recall, bool)
            or not isinstance(self.recall, (int, float))
            or not 0 < self.recall <= 1
        ):
            raise ArgumentError(f"recall is a number above 0, up to 1, not {shown(self.recall)}")
        if self.memory is not None:
            check_whole_number("memory", self.memory, 0)
        return self


def chosen_kind(wanted: IndexType, count: int, dimension: int) -> str:
    """``flat`` or FAISS's name of the kind for so many vectors.

    Among 107,525 and among a million vectors, IVF with fast-scan codes found 98 % of what
    sentences look for faster than IVF with longer codes and than HNSW, with the least memory and
    the shortest build (`scripts/bench/scale`).
    """
    if not count or wanted.kind == FLAT:
        return FLAT
    if wanted.kind == AUTO and count * dimension <= FLAT_NUMBERS:
        return FLAT
    if wanted.kind == HNSW:
        return f"HNSW{LINKS},SQ8"
    if wanted.kind in (AUTO, IVF):
        if count < IVF_LEAST:
            return FLAT
        lists = max(1, round(4 * math.sqrt(count)))
        return f"IVF{lists},PQ{_sub_quantisers(count, dimension, wanted.memory)}x4fs"
    return wanted.kind


def is_kind_of(kind: str, chosen: str) -> bool:
    """Whether an index that was built is of the chosen kind, but for its number of lists."""
    return _LISTS.sub("IVF", kind) == _LISTS.sub("IVF", chosen)


def index_class(kind: str) -> type[VectorIndex] | None:
    """What builds and opens a kind; None for one that is not known."""
    if kind == FLAT:
        from semsearch.vector_indexes.flat import FlatIndex

        return FlatIndex
    if _FACTORY.fullmatch(kind):
        from semsearch.vector_indexes.refined import RefinedIndex  # of large indexes alone

        return RefinedIndex
    return None


def _sub_quantisers(count: int, dimension: int, memory: int | None) -> int:
    """About a quarter of the dimension, which it divides; fewer for less memory.

    A code has half a byte for each of them, and 8 bytes for its id.
    """
    possible = [m for m in range(1, max(1, dimension // 4) + 1) if dimension % m == 0]
    if memory is None:
        return possible[-1]
    fitting = [m for m in possible if count * (m / 2 + 8) <= memory]
    if not fitting:
        least = count * (possible[0] / 2 + 8)
        logger.warning(
            "the codes of %s vectors need %.0f bytes at least, more than the %s of --memory",
            f"{count:,}",
            least,
            f"{memory:,}",
        )
    return max(fitting, default=possible[0])
