"""The published data sets known by name, as listed in known_sets.toml and known_files.tsv."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType

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
    source: str | None  #: where to obtain the files that have no URL


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
        facts["rows"] = MappingProxyType(facts["rows"])
        facts.setdefault("source", None)
        sets[name] = KnownSet(name=name, files=tuple(files[name]), **facts)
    return MappingProxyType(sets)


def known_set(name: str) -> KnownSet:
    """The set with this name.

    Raises:
        DatasetError: the set does not exist.
    """
    found = known_sets().get(name)
    if found is None:
        raise DatasetNotFoundError(f"no data set {name!r} (known: {', '.join(known_sets())})")
    return found


def names_of(kind: DatasetKind) -> list[str]:
    """The known sets of a kind."""
    return [name for name, known in known_sets().items() if known.kind is kind]


def owner_of(path: str) -> KnownSet | None:
    """The set that a file belongs to, by its path below the data folder."""
    owners = (known for known in known_sets().values() if path in {f.path for f in known.files})
    return next(owners, None)


def check_split(name: str, split: str, splits: Iterable[str]) -> None:
    """Raise DatasetError unless a known set has this split."""
    if split not in splits:
        raise DatasetError(f"{name} has no split {split!r} (splits: {', '.join(splits)})")
