"""Where published data sets lie."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

from semsearch.datasets.registry import KnownFile, KnownSet, owner_of
from semsearch.errors import DatasetNotFoundError


def data_folder() -> Path:
    """The folder of data sets: SEMSEARCH_DATA or, without it, one among the user's data."""
    named = os.environ.get("SEMSEARCH_DATA")
    return Path(named) if named else user_data_path("semsearch") / "data"


def data_file(name: str) -> Path:
    """A file of a published data set, in the folder of data sets.

    Args:
        name: its path in there, such as ``sts/stsbenchmark/sts-test.csv``.

    Raises:
        DatasetNotFoundError: the folder has no such file.
    """
    folder = data_folder()
    file = folder / name
    if not _is_file(file):
        raise DatasetNotFoundError(f"{name} is not in {_told(folder)}; {_way_out(owner_of(name))}")
    return file


def missing_files(known: KnownSet) -> list[KnownFile]:
    """The files of a set that are not here."""
    return [file for file in known.files if not _is_file(data_folder() / file.path)]


def place_of(known: KnownSet) -> Path:
    """The folder of a set, or its only file.

    Raises:
        DatasetNotFoundError: no file of it is here.
    """
    if len(missing_files(known)) == len(known.files):
        raise DatasetNotFoundError(
            f"{known.name} is not in {_told(data_folder())}; {_way_out(known)}"
        )
    return data_folder() / known.place


def existing_path(name: str, known: Iterable[str], what: str) -> Path:
    """A path of the user's, given where a known set could be named.

    Args:
        name: what was given.
        known: the sets that could be meant instead.
        what: what they are.

    Raises:
        DatasetNotFoundError: there is no such path.
    """
    with suppress(OSError, ValueError, RuntimeError):  # too long, no such user's home
        path = Path(name).expanduser()
        if path.exists():
            return path
    raise DatasetNotFoundError(f"no {what} or file {name!r} (known: {', '.join(known)})")


def stem(path: Path) -> str:
    """The name of a file or folder without its endings."""
    name = path.absolute().name
    return name.split(".")[0] or name


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):  # it may not be looked at
        return path.is_file()
    return False


def _told(folder: Path) -> str:
    if os.environ.get("SEMSEARCH_DATA"):
        return f"{folder}, which SEMSEARCH_DATA names"
    return f"{folder} (SEMSEARCH_DATA can name another folder)"


def _way_out(known: KnownSet | None) -> str:
    if known is None:
        return "set SEMSEARCH_DATA to a folder that has it"
    return f"semsearch datasets fetch {known.name}"
