"""Which kind of vector index: by what the user asks for, by size and by memory."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from semsearch.arguments import check_text, check_whole_number, shown
from semsearch.errors import ArgumentError
from semsearch.vector_indexes.flat import FlatIndex
from semsearch.vector_indexes.protocol import VectorIndex
from semsearch.vector_indexes.refined import RefinedIndex

AUTO, FLAT, HNSW, IVF = "auto", "flat", "hnsw", "ivf"

#: Up to so many numbers (50,000 vectors of MiniLM) exact search takes milliseconds.
FLAT_NUMBERS = 50_000 * 384

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
        memory: how many bytes may be needed to search, beside the exact vectors on the disk.
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
    """``flat`` or FAISS's name of the kind for so many vectors."""
    lists = max(1, round(4 * math.sqrt(count)))
    graph, inverted = f"HNSW{LINKS},SQ8", f"IVF{lists},SQ8"
    named = {FLAT: FLAT, HNSW: graph, IVF: inverted}
    if wanted.kind != AUTO:
        return named.get(wanted.kind, wanted.kind) if count else FLAT
    if count * dimension <= FLAT_NUMBERS:
        return FLAT
    if wanted.memory is None or graph_bytes(count, dimension) <= wanted.memory:
        return graph
    if count * (dimension + 8) <= wanted.memory:
        return inverted
    return f"IVF{lists},PQ{_sub_quantisers(dimension)}x4fs"


def is_kind_of(kind: str, chosen: str) -> bool:
    """Whether an index that was built is of the chosen kind, but for its number of lists."""
    return _LISTS.sub("IVF", kind) == _LISTS.sub("IVF", chosen)


def graph_bytes(count: int, dimension: int) -> int:
    """What HNSW over codes of eight bits needs: a code, and 4 bytes a link."""
    return count * (dimension + 4 * 2 * LINKS + 24)


def index_class(kind: str) -> type[VectorIndex] | None:
    """What builds and opens a kind; None for one that is not known."""
    if kind == FLAT:
        return FlatIndex
    return RefinedIndex if _FACTORY.fullmatch(kind) else None


def _sub_quantisers(dimension: int) -> int:
    """About a quarter of the dimension, of which it is a multiple."""
    return next(m for m in range(max(1, dimension // 4), 0, -1) if dimension % m == 0)
