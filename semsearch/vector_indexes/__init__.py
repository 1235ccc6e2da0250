"""Vector indexes: vectors by id in a file, searched by inner product.

`VectorIndex` is what an index does; `choice` knows the kinds.
"""

from __future__ import annotations

from semsearch.vector_indexes.choice import (
    AUTO,
    FLAT,
    IndexType,
    chosen_kind,
    index_class,
    is_kind_of,
)
from semsearch.vector_indexes.protocol import Blocks, Ids, VectorIndex
from semsearch.vector_indexes.recall import measured_recall

__all__ = [
    "AUTO",
    "FLAT",
    "Blocks",
    "Ids",
    "IndexType",
    "VectorIndex",
    "chosen_kind",
    "index_class",
    "is_kind_of",
    "measured_recall",
]
