"""Stores: where documents, passages and vectors are kept."""

from semsearch.stores.local import create_store, open_store

__all__ = ["create_store", "open_store"]
