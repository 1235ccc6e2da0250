"""The index: one directory, its database and what is derived from it."""

from semsearch.index.index import Index, IndexInfo
from semsearch.index.spaces import STORED_TYPES

__all__ = ["STORED_TYPES", "Index", "IndexInfo"]
