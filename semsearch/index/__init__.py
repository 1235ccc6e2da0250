"""The index: one directory, its database and what is derived from it."""

from semsearch.index.index import Index, IndexInfo
from semsearch.index.spaces import STORED_TYPES
from semsearch.index.verification import Fault
from semsearch.index.writer import IndexWriter, Summary

__all__ = ["STORED_TYPES", "Fault", "Index", "IndexInfo", "IndexWriter", "Summary"]
