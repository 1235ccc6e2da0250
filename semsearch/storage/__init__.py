"""Stores keep documents, passages and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from semsearch.arguments import STORES, store_of
from semsearch.errors import ArgumentError, IndexStoreError
from semsearch.protocols import Encoder
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
    with _module(path) as module:
        store: Store = module.open_store(path)
        return store


def create_store(
    path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
) -> Store:
    """Open a store, or create it with a space for each encoder."""
    with _module(path) as module:
        store: Store = module.create_store(path, max_tokens, encoders, dtype)
        return store


@contextmanager
def _module(path: Path) -> Iterator[Any]:
    """The store for a location; errors in the code of a plugin name it."""
    name = store_of(path)
    if name is not None:
        yield import_module(name)
        return
    from semsearch.plugins import find_plugin

    engine = str(path).partition(":")[0]
    plugin = find_plugin(GROUP, engine)
    if plugin is None:
        known = ", ".join(STORES)
        raise ArgumentError(f"{path}: no store is called '{engine}' (stores: {known}, and plugins)")
    with plugin.running(str(path), IndexStoreError):
        yield plugin.load
