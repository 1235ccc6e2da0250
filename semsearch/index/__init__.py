"""The index: one directory, its database and what is derived from it."""

from semsearch.index.index import Index, IndexInfo
from semsearch.index.writer import IndexWriter, Summary

__all__ = ["Index", "IndexInfo", "IndexWriter", "Summary"]
