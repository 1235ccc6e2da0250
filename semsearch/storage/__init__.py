"""Stores keep documents, passages and vectors: in a directory, or in Milvus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from semsearch.errors import IndexNotFoundError
from semsearch.protocols import Encoder
from semsearch.storage.address import store_of
from semsearch.storage.interface import Store


def open_store(path: Path) -> Store:
    """Open the store in a directory or at an address.

    Raises:
        ArgumentError: no store is known by the beginning of the address.
        IndexNotFoundError: there is no store.
        IndexFormatError: it is not a store, or has another format.
    """
    store: Store = import_module(store_of(path)).open_store(path)
    return store


def create_store(path: Path, max_tokens: int, encoders: Sequence[Encoder]) -> Store:
    """Open a store, or create it with a space for each encoder."""
    with suppress(IndexNotFoundError):
        return open_store(path)
    store: Store = import_module(store_of(path)).create_store(path, max_tokens, encoders)
    return store
