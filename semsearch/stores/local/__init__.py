"""The local store: SQLite, with FAISS snapshots beside it, in one directory."""

from semsearch.stores.local.store import create_store, open_store

__all__ = ["create_store", "open_store"]
