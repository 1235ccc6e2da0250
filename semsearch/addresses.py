"""Where an index is: a directory, or the address of one that an engine keeps.

An address begins with the name of its engine and a colon: ``milvus://HOST:PORT/NAME``. Plugins
bring further engines, whose addresses begin with ``ENGINE://``.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import cast

#: The package of the store that keeps what begins so.
STORES = {
    "milvus": "semsearch.stores.milvus",
    "milvus-lite": "semsearch.stores.milvus",
}
DIRECTORIES = "semsearch.stores.local"

_ADDRESS = re.compile(rf"(({'|'.join(STORES)}):|[a-z][a-z0-9_-]*://).*", re.DOTALL)


class Address(PurePosixPath):
    """An address, which is passed around as the path of a directory is, on every system.

    It leads to no file, and so has no methods that open any. A path has no empty parts, so ``//``
    is ``/`` in it; `str` writes both.
    """

    @property
    def engine(self) -> str:
        """What it begins with."""
        return super().__str__().partition(":")[0]

    @property
    def rest(self) -> str:
        """What comes behind the colon: ``/HOST:PORT/NAME``."""
        return super().__str__().partition(":")[2]

    def absolute(self) -> Address:
        """Itself: it is the same from everywhere."""
        return self

    resolve = absolute

    def __str__(self) -> str:
        has_host = self.rest.startswith("/") and self.engine != "milvus-lite"
        slashes = "/" if has_host else "//" if self.rest.startswith("/") else ""
        return f"{self.engine}:{slashes}{self.rest}"


def place(text: str) -> Path:
    """The place that a text names: an address, or a path in the file system."""
    return cast("Path", Address(text)) if _ADDRESS.fullmatch(text) else Path(text)


def store_of(path: Path) -> str | None:
    """The package of the store that keeps the index at a place; None if a plugin may."""
    return STORES.get(path.engine) if isinstance(path, Address) else DIRECTORIES
