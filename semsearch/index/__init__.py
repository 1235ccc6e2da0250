"""The index: one directory, its database and what is derived from it."""

from semsearch.index.index import Index, IndexInfo

__all__ = ["Index", "IndexInfo"]
