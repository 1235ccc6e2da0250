"""Which indexes are meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from semsearch.errors import ArgumentError, IndexNotFoundError

#: Where indexes are made unless `--index` says otherwise.
INDEXES = Path("indexes")


def indexes_here(here: Path = Path()) -> list[Path]:
    """The indexes under indexes/, by name."""
    return sorted(file.parent for file in (here / INDEXES).glob("*/index.sqlite"))


def existing_index(directory: Path | None, here: Path = Path()) -> Path:
    """The index that is meant: the one named, or the only one there is.

    Args:
        directory: the one named.
        here: where to look for the only one.

    Raises:
        IndexNotFoundError: none is named, and there is none or more than one.
    """
    if directory is not None:
        return directory
    found = indexes_here(here)
    if len(found) == 1:
        return found[0]
    if not found:
        raise _no_index()
    names = ", ".join(str(path) for path in found)
    raise IndexNotFoundError(f"several indexes here ({names}); name one with --index")


def all_indexes(directories: Sequence[Path]) -> dict[str, Path]:
    """The indexes that are meant, by name: those given, or all that there are.

    Raises:
        ArgumentError: two have one name.
        IndexNotFoundError: none is given, and there is none.
    """
    found: dict[str, Path] = {}
    for directory in directories or indexes_here():
        name = directory.resolve().name
        if name in found:
            raise ArgumentError(f"two indexes are called '{name}'")
        found[name] = directory
    if not found:
        raise _no_index()
    return found


def _no_index() -> IndexNotFoundError:
    return IndexNotFoundError(
        f"no index under {INDEXES}/; make one with: semsearch index CORPUS, "
        "or name one with --index"
    )
