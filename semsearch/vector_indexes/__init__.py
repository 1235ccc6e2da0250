"""Vector indexes: vectors by id in a file, searched by inner product.

This module chooses the kind of index; `flat` has the interface.
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

#: Up to this many numbers (50,000 vectors of MiniLM), exact search takes milliseconds.
FLAT_NUMBERS = 50_000 * 384

#: Fewer vectors are not enough to train lists and short codes.
MIN_IVF_VECTORS = 1000

#: Up to this many vectors, ``auto`` makes one list, that is, compares all codes. With a few hundred
#: thousand, the neighbours of a query are spread over most of the lists (RESULTS.md).
ONE_LIST = 250_000

#: The FAISS factory strings of the types that can be built: a graph or lists, followed by a code.
#: With others, FAISS may crash, as it does if a number is 0, or with a graph of one link per node.
_FACTORY = re.compile(
    r"HNSW(?!1,)[1-9]\d{0,2},(Flat|SQ(4|6|8|fp16|bf16))"
    r"|IVF[1-9]\d*(_HNSW(?!1,)[1-9]\d{0,2})?,"
    r"(Flat|SQ(4|6|8|fp16|bf16)|PQ[1-9]\d*(x[1-9]\d*|x4fsr?)?|RaBitQ(fs)?)",
    re.ASCII,
)

#: The types that older versions accepted: indexes may still request them, and have their files.
_FORMER = re.compile(r"(HNSW|IVF)\d+(_HNSW\d+)?(\([^()]*\))?,[A-Za-z0-9]+", re.ASCII)

_LISTS = re.compile(r"^IVF\d+")

#: Links per node of the graph.
LINKS = 32


class IndexType(NamedTuple):
    """The requested type of vector index.

    Args:
        kind: ``auto``, ``flat``, ``hnsw``, ``ivf`` or a FAISS factory string of the HNSW and IVF
            families with the codes Flat, SQ and, for IVF, PQ and RaBitQ (``IVF4096,PQ96x4fs``).
        recall: the recall@10 for which approximate search is tuned.
        memory: the maximum size in bytes of the codes, without the exact vectors, which are read
            from disk. With shorter codes, more exact vectors are read.
    """

    kind: str = AUTO
    recall: float = 0.98
    memory: int | None = None

    def checked(self) -> IndexType:
        """Validate it.

        Raises:
            ArgumentError: the kind or the recall is invalid.
        """
        check_text("the index type", self.kind)
        if self.kind not in (AUTO, FLAT, HNSW, IVF) and not _FACTORY.fullmatch(self.kind):
            raise ArgumentError(
                f"no index type '{self.kind}': auto, flat, hnsw, ivf, or a FAISS factory string "
                "of HNSW (Flat, SQ) or IVF (Flat, SQ, PQ, RaBitQ), such as 'IVF4096,PQ96x4fs'"
            )
        if (
            isinstance(self.recall, bool)
            or not isinstance(self.recall, (int, float))
            or not 0 < self.recall <= 1
        ):
            raise ArgumentError(
                f"recall must be a number above 0, up to 1, not {shown(self.recall)}"
            )
        if self.memory is not None:
            check_whole_number("memory", self.memory, 0)
        return self

    def supported(self) -> IndexType:
        """This type; with the kind ``auto`` if only older versions accepted its kind."""
        is_former = _FORMER.fullmatch(self.kind) and not _FACTORY.fullmatch(self.kind)
        return self._replace(kind=AUTO) if is_former else self


def chosen_kind(wanted: IndexType, count: int, dimension: int) -> str:
    """``flat``, or the FAISS factory string for this number of vectors.

    With 107,525 and with a million vectors, IVF with fast-scan codes reached a recall of 98 % for
    sentences faster than IVF with longer codes and than HNSW, with the least memory and the
    shortest build (`scripts/bench/scale`).
    """
    if not count or wanted.kind == FLAT:
        return FLAT
    if wanted.kind == AUTO and count * dimension <= FLAT_NUMBERS:
        return FLAT
    if wanted.kind == HNSW:
        return f"HNSW{LINKS},SQ8"
    if wanted.kind in (AUTO, IVF):
        if count < MIN_IVF_VECTORS:
            return FLAT
        is_one = wanted.kind == AUTO and count <= ONE_LIST
        lists = 1 if is_one else round(math.sqrt(count))
        codes = _sub_quantisers(count, lists, dimension, wanted.memory)
        return f"IVF{lists},PQ{codes}x4fs"
    return wanted.kind


def is_kind_of(kind: str, chosen: str) -> bool:
    """Whether an existing index has the chosen kind, apart from its number of lists."""
    return _LISTS.sub("IVF", kind) == _LISTS.sub("IVF", chosen)


def index_class(kind: str) -> type[VectorIndex] | None:
    """The class that builds and opens a kind; None if it is unknown."""
    if kind == FLAT:
        from semsearch.vector_indexes.flat import FlatIndex

        return FlatIndex
    if _FORMER.fullmatch(kind):
        from semsearch.vector_indexes.refined import RefinedIndex

        return RefinedIndex
    return None


def _sub_quantisers(count: int, lists: int, dimension: int, memory: int | None) -> int:
    """The number of sub-quantisers: the least divisor of the dimension from a quarter of it.

    A code takes half a byte for each of them, in lists filled up to blocks of 32 codes, and 8 bytes
    for its id. A lower divisor is returned if these codes do not fit the memory.
    """
    divisors = [m for m in range(1, dimension + 1) if dimension % m == 0]
    most = next(m for m in divisors if 4 * m >= dimension)
    possible = [m for m in divisors if m <= most]
    if memory is None:
        return possible[-1]
    most_codes = count + 31 * lists
    sizes = {m: most_codes * ((m + 1) // 2) + 8 * count for m in possible}
    fitting = [m for m, size in sizes.items() if size <= memory]
    if not fitting:
        logger.warning(
            "the codes of %s vectors need at least %s bytes, more than the %s of --memory",
            f"{count:,}",
            f"{sizes[1]:,}",
            f"{memory:,}",
        )
    return max(fitting, default=1)
