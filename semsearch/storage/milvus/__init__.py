"""The store of the extra ``milvus``: a Milvus server, or a file of milvus-lite."""

from semsearch.storage.milvus.store import create_store, open_store

__all__ = ["create_store", "open_store"]
