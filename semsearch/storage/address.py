"""Addresses of indexes.

An address starts with the name of its engine and a colon: ``milvus://HOST:PORT/NAME``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import cast

from semsearch.errors import ArgumentError, check_path

#: The packages of stores, by the engine of an address.
STORES = {"milvus": "semsearch.storage.milvus", "milvus-lite": "semsearch.storage.milvus"}
DIRECTORIES = "semsearch.storage.sqlite"

_ADDRESS = re.compile(rf"(({'|'.join(STORES)}):|[a-z][a-z0-9_-]*://).*", re.DOTALL)


class Address(PurePosixPath):
    """An address, which can be passed like the path of a directory, on every system.

    It has no methods that open files. Paths have no empty parts, so ``//`` becomes ``/`` in it;
    `str` restores it.
    """

    @property
    def engine(self) -> str:
        """The name of its engine."""
        return super().__str__().partition(":")[0]

    @property
    def rest(self) -> str:
        """The part after the colon: ``/HOST:PORT/NAME``."""
        return super().__str__().partition(":")[2]

    def absolute(self) -> Address:
        """The address itself, which does not depend on the working directory."""
        return self

    resolve = absolute

    def __str__(self) -> str:
        has_host = self.rest.startswith("/") and self.engine != "milvus-lite"
        slashes = "/" if has_host else "//" if self.rest.startswith("/") else ""
        return f"{self.engine}:{slashes}{self.rest}"


def place(location: str | os.PathLike[str]) -> Path:
    """Parse a location: an address, or a path in the file system.

    Raises:
        ArgumentError: it is neither a string nor a path.
    """
    path = check_path("path", location)
    text = os.fspath(location)
    return cast("Path", Address(text)) if _ADDRESS.fullmatch(text) else path


def store_of(path: Path) -> str:
    """The package of the store for a location.

    Raises:
        ArgumentError: no store has the engine of the address.
    """
    if not isinstance(path, Address):
        return DIRECTORIES
    if path.engine not in STORES:
        known = ", ".join(STORES)
        raise ArgumentError(f"{path}: no store is called '{path.engine}' (stores: {known})")
    return STORES[path.engine]
