"""Locates published data sets on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

from semsearch.errors import DatasetNotFoundError
from semsearch.evaluation.datasets.registry import KnownFile, KnownSet, owner_of


def data_folder() -> Path:
    """The data folder: SEMSEARCH_DATA or, by default, one in the user's data directory."""
    named = os.environ.get("SEMSEARCH_DATA")
    return Path(named) if named else user_data_path("semsearch") / "data"


def data_file(name: str) -> Path:
    """A file of a published data set.

    Args:
        name: its path in the data folder, such as ``sts/stsbenchmark/sts-test.csv``.

    Raises:
        DatasetNotFoundError: the file does not exist.
    """
    folder = data_folder()
    file = folder / name
    if not _is_file(file):
        raise DatasetNotFoundError(
            f"{name} is not in {_described(folder)}; {_advice(owner_of(name))}"
        )
    return file


def missing_files(known: KnownSet) -> list[KnownFile]:
    """The files of a set that have not been downloaded."""
    return [file for file in known.files if not _is_file(data_folder() / file.path)]


def place_of(known: KnownSet) -> Path:
    """The folder of a set, or its only file.

    Raises:
        DatasetNotFoundError: none of its files exists.
    """
    if len(missing_files(known)) == len(known.files):
        raise DatasetNotFoundError(
            f"{known.name} is not in {_described(data_folder())}; {_advice(known)}"
        )
    return data_folder() / known.place


def existing_path(name: str, known: Iterable[str], what: str) -> Path:
    """A path given by the user instead of the name of a known set.

    Args:
        name: the path.
        known: the names of known sets, for the error message.
        what: their kind, for the error message.

    Raises:
        DatasetNotFoundError: the path does not exist.
    """
    with suppress(OSError, ValueError, RuntimeError):  # too long, unknown home directory
        path = Path(name).expanduser()
        if path.exists():
            return path
    raise DatasetNotFoundError(f"no {what} or file {name!r} (known: {', '.join(known)})")


def stem(path: Path) -> str:
    """The name of a folder, or that of a file without its suffix and that of its compression."""
    name = path.absolute().name
    return name if path.is_dir() else Path(name.removesuffix(".gz")).stem


def name_of(given: str, path: Path, known: Iterable[str]) -> str:
    """The name of a set read from a path: its stem, or the path as given if a known set has it."""
    name = stem(path)
    return given if name in known else name


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):  # permission denied, invalid name
        return path.is_file()
    return False


def _described(folder: Path) -> str:
    if os.environ.get("SEMSEARCH_DATA"):
        return f"{folder} (set by SEMSEARCH_DATA)"
    return f"{folder} (set SEMSEARCH_DATA for another folder)"


def _advice(known: KnownSet | None) -> str:
    if known is None:
        return "set SEMSEARCH_DATA to a folder that contains it"
    return f"run semsearch datasets fetch {known.name}"
