"""Stores keep documents, passages and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from semsearch.errors import ArgumentError
from semsearch.protocols import Encoder, find_plugin
from semsearch.storage.address import STORES, store_of
from semsearch.storage.interface import Store

#: Entry points of plugins; each names a module, or an object, with the functions `open_store` and
#: `create_store`.
GROUP = "semsearch.storage"


def open_store(path: Path) -> Store:
    """Open a store.

    Args:
        path: its directory or address.

    Raises:
        IndexNotFoundError: there is no store.
        IndexFormatError: it is not a store, or has another format.
    """
    store: Store = _module(path).open_store(path)
    return store


def create_store(
    path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
) -> Store:
    """Open a store, or create it with a space for each encoder."""
    store: Store = _module(path).create_store(path, max_tokens, encoders, dtype)
    return store


def _module(path: Path) -> Any:
    """The store for a location: a module of this package, or a plugin."""
    name = store_of(path)
    if name is not None:
        return import_module(name)
    engine = str(path).partition(":")[0]
    plugin = find_plugin(GROUP, engine)
    if plugin is None:
        known = ", ".join(STORES)
        raise ArgumentError(f"{path}: no store is called '{engine}' (stores: {known}, and plugins)")
    return plugin
