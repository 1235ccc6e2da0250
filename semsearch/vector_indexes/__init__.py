"""Vector indexes: vectors by id in a file, searched by inner product.

A kind of index is a module here with one class (`VectorIndex`); `KINDS` names it.
"""

from __future__ import annotations

from semsearch.vector_indexes.flat import FlatIndex
from semsearch.vector_indexes.protocol import Ids, VectorIndex
from semsearch.vector_indexes.recall import measured_recall

__all__ = ["KINDS", "Ids", "VectorIndex", "measured_recall"]

KINDS: dict[str, type[VectorIndex]] = {FlatIndex.kind: FlatIndex}
