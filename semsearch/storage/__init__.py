"""Stores keep documents, passages and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import cast

from semsearch.addresses import STORES, store_of
from semsearch.errors import ArgumentError, IndexStoreError
from semsearch.protocols import Encoder
from semsearch.storage.interface import Store, StoreModule

#: Entry points of plugins; each names a module, or an object, with the functions of `StoreModule`.
GROUP = "semsearch.storage"


def open_store(path: Path) -> Store:
    """Open a store; see `StoreModule`."""
    with _module(path) as module:
        return module.open_store(path)


def create_store(
    path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
) -> Store:
    """Open a store, or create it; see `StoreModule`."""
    with _module(path) as module:
        return module.create_store(path, max_tokens, encoders, dtype)


@contextmanager
def _module(path: Path) -> Iterator[StoreModule]:
    """The store for a location; errors in the code of a plugin name it."""
    name = store_of(path)
    if name is not None:
        yield cast("StoreModule", import_module(name))
        return
    from semsearch.plugins import find_plugin

    engine = str(path).partition(":")[0]
    plugin = find_plugin(GROUP, engine)
    if plugin is None:
        known = ", ".join(STORES)
        raise ArgumentError(f"{path}: no store is called '{engine}' (stores: {known}, and plugins)")
    with plugin.running(str(path), IndexStoreError):
        yield cast("StoreModule", plugin.load)
