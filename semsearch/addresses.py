"""Locations of indexes: directories, and addresses of indexes in other engines.

An address starts with the name of its engine and a colon: ``milvus://HOST:PORT/NAME``. Plugins add
engines, whose addresses start with ``ENGINE://``.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath, PurePosixPath
from typing import cast

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


def place(text: str) -> Path:
    """Parse a location: an address, or a path in the file system."""
    return cast("Path", Address(text)) if _ADDRESS.fullmatch(text) else Path(text)


def resolved(path: Path, here: Path = Path()) -> Path:
    """A location that does not depend on the working directory, to compare it with others.

    Args:
        path: a directory or an address.
        here: the directory that it is relative to.
    """
    if not isinstance(path, Address):
        return (here / path).resolve()
    if path.engine == "milvus-lite":
        return cast("Path", Address(f"{path.engine}:{(here / path.rest).resolve()}"))
    return path


def sqlite_uri(file: PurePath) -> str:
    """The URI of a database for SQLite, which takes a path, but no host: ``//server/folder/file``.

    `Path.as_uri` writes the host of such a path on Windows, and SQLite refuses it.
    """
    return re.sub("^file://(?!/)", "file:////", file.as_uri())


def store_of(path: Path) -> str | None:
    """The package of the store for a location; None if only a plugin may have one."""
    return STORES.get(path.engine) if isinstance(path, Address) else DIRECTORIES
