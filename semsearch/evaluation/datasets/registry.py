"""The published data sets known by name, and where they are on disk.

They are listed in known_sets.toml and known_files.tsv.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType

from platformdirs import user_data_path

from semsearch.errors import DatasetError, DatasetNotFoundError


class DatasetKind(Enum):
    """What a data set is for."""

    STS = "sts"  #: sentence pairs with a similarity score
    TRANSLATED_STS = "sts in translation"  #: the same pairs in several languages
    LABELLED_PAIRS = "labelled pairs"  #: sentence pairs with a label
    RETRIEVAL = "retrieval"  #: documents, queries and judgements
    WORD_VECTORS = "word vectors"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """One file of a set as published; unknown values are None."""

    path: str  #: below the data folder
    size: int | None  #: bytes
    sha256: str | None
    url: str | None  #: where to download it; then size and digest are known

    @property
    def place(self) -> Path:
        """Where it is, or will be, on disk."""
        return data_folder() / self.path


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A published data set."""

    name: str
    kind: DatasetKind
    about: str  #: a description in one line
    home: str  #: the page of its authors
    licence: str
    place: str  #: its folder or only file, below the data folder
    rows: Mapping[str, int]  #: their number by split, and that of ``documents``
    files: tuple[KnownFile, ...]
    source: str | None = None  #: where to obtain the files that have no URL

    def missing_files(self) -> list[KnownFile]:
        """The files that have not been downloaded."""
        return [file for file in self.files if not file.place.is_file()]


@cache
def known_sets() -> Mapping[str, KnownSet]:
    """The known sets by name."""
    folder = Path(__file__).parent
    files: dict[str, list[KnownFile]] = {}
    for line in (folder / "known_files.tsv").read_text("utf-8").splitlines()[1:]:
        name, path, size, sha256, url = line.split("\t")
        file = KnownFile(path, int(size) if size else None, sha256 or None, url or None)
        files.setdefault(name, []).append(file)
    sets = {}
    for name, facts in tomllib.loads((folder / "known_sets.toml").read_text("utf-8")).items():
        facts["kind"] = DatasetKind(facts["kind"])
        sets[name] = KnownSet(name=name, files=tuple(files[name]), **facts)
    return MappingProxyType(sets)


def known_set(name: str) -> KnownSet:
    """The set with this name.

    Raises:
        DatasetNotFoundError: the set does not exist.
    """
    found = known_sets().get(name)
    if found is None:
        raise DatasetNotFoundError(f"no data set {name!r} (known: {', '.join(known_sets())})")
    return found


def names_of(kind: DatasetKind) -> list[str]:
    """The known sets of a kind."""
    return [name for name, known in known_sets().items() if known.kind is kind]


def check_split(name: str, split: str, splits: Iterable[str] = ("test",)) -> None:
    """Raise DatasetError unless a set has this split."""
    if split not in splits:
        raise DatasetError(f"{name} has no split {split!r} (splits: {', '.join(splits)})")


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
    file = data_folder() / name
    if file.is_file():
        return file
    is_named = os.environ.get("SEMSEARCH_DATA")
    how = "set by SEMSEARCH_DATA" if is_named else "set SEMSEARCH_DATA for another folder"
    owners = [
        known.name for known in known_sets().values() for one in known.files if one.path == name
    ]
    advice = f"; run semsearch datasets fetch {owners[0]}" if owners else ""
    raise DatasetNotFoundError(f"{name} is not in {data_folder()} ({how}){advice}")


def existing_path(given: str, known: Iterable[str], what: str) -> tuple[Path, str]:
    """A path given by the user instead of the name of a known set, and the name of its set.

    The name is that of the folder, or of the file without its suffix and that of its compression;
    or the path as given, if a known set has that name.

    Args:
        given: the path.
        known: the names of known sets.
        what: their kind, for the error message.

    Raises:
        DatasetNotFoundError: the path does not exist.
    """
    path = Path(given).expanduser()
    if not path.exists():
        raise DatasetNotFoundError(f"no {what} or file {given!r} (known: {', '.join(known)})")
    name = stem(path)
    return path, given if name in known else name


def stem(path: Path) -> str:
    """The name of a folder, or that of a file without its suffix and that of its compression."""
    name = path.absolute().name
    return name if path.is_dir() else Path(name.removesuffix(".gz")).stem
