"""A map of an index: the positions and groups of its passages, in a file beside the index."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.errors import (
    ArgumentError,
    IndexStoreError,
    UnsupportedByStoreError,
    check_whole_number,
)
from semsearch.explore.clusters import cluster
from semsearch.explore.projection import OnProgress, Points, project
from semsearch.index import Index
from semsearch.storage.address import Address
from semsearch.storage.interface import FoundPassage, text_hash
from semsearch.storage.spaces import Space

logger = logging.getLogger(__name__)

#: The number of words in the name of a group.
WORDS = 3
#: The number of passages read at once.
BLOCK = 1_000
#: The metadata key of a map file.
KEY = b"semsearch"


@dataclass(frozen=True, eq=False)
class Map:
    """Passages in two dimensions, and their groups.

    Args:
        space: the name of the embedding space that was projected.
        fingerprint: of its encoder.
        passage_ids: shape (n,).
        hashes: of their texts, to hide passages that have changed, shape (n,).
        points: shape (n, 2).
        groups: indices into `names`, shape (n,).
        names: of the groups, from their keywords, the largest group first.
        typical: of each group, the row of the passage nearest to its centroid.
    """

    space: str
    fingerprint: str
    passage_ids: NDArray[Any]
    hashes: NDArray[Any]
    points: Points
    groups: NDArray[Any]
    names: list[str]
    typical: list[int]

    def __len__(self) -> int:
        """The number of passages."""
        return len(self.passage_ids)

    def save(self, index: Path) -> None:
        """Write the map beside an index, atomically.

        Raises:
            IndexStoreError: it cannot be written.
        """
        import pyarrow
        from pyarrow import parquet

        about = {
            "space": self.space,
            "fingerprint": self.fingerprint,
            "names": self.names,
            "typical": self.typical,
        }
        table = pyarrow.table(
            {
                "passage": self.passage_ids,
                "hash": self.hashes,
                "x": self.points[:, 0],
                "y": self.points[:, 1],
                "group": self.groups,
            }
        ).replace_schema_metadata({KEY: json.dumps(about)})
        draft = index / f"{self.space}.map.tmp"
        try:
            parquet.write_table(table, draft)
            draft.replace(map_file(index, self.space))
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise IndexStoreError(f"cannot write in {index}: {error}") from error


def map_file(index: Path, space: str) -> Path:
    """The file of the map of a space."""
    return index / f"{space}.map"


def make_map(
    index: Index,
    space: str | None = None,
    *,
    seed: int = 0,
    on_progress: OnProgress = lambda step, done, total: None,
) -> Map:
    """Project the passages of an index, and group them.

    >>> from semsearch import Document, Index
    >>> from semsearch.explore.map import make_map
    >>> index = Index.create("birds", "hashing")
    >>> _ = index.add([Document("a", "red bird"), Document("b", "blue fish")])
    >>> make_map(index).points.shape
    (2, 2)

    Args:
        index: an index with at least one passage.
        space: the name of the embedding space; None for the first.
        seed: at least 0; the same seed returns the same map.
        on_progress: called with the name of a step, how much of it is done, and of how much (0 if
            that is unknown).

    Raises:
        ArgumentError: the index is empty, or not in a directory, where the map would be stored, or
            the seed is negative.
        SpaceError: the space does not exist, or is not complete yet.
        IndexStoreError: the index cannot be written.
    """
    seed = check_whole_number("the seed", seed, 0)
    if isinstance(index.path, Address):
        raise UnsupportedByStoreError(
            f"a map is stored in the directory of its index, and {index.path} has none; copy the "
            "index into one: semsearch copy"
        )
    found = index.space(space, complete=True)
    passages = index.passages(found.name)
    if not passages.texts:
        raise ArgumentError(f"the index {index.path} is empty; add documents before mapping it")
    if not os.access(index.path, os.W_OK):
        raise IndexStoreError(f"cannot write in {index.path}: Permission denied")
    points = project(passages.vectors, seed, on_progress)
    on_progress("grouping", 0, 0)
    clustering = cluster(
        passages.vectors, passages.texts, seed=seed, words=WORDS, stop_words=index.info().stop_words
    )
    groups = numpy.array(clustering.labels(), numpy.int32) - 1
    names = [", ".join(group.words) or f"group {group.label}" for group in clustering.clusters]
    hashes = numpy.array([_short_hash(text) for text in passages.texts])
    return Map(
        found.name,
        found.fingerprint,
        passages.passage_ids,
        hashes,
        points,
        groups,
        _distinct(names),
        [group.central for group in clustering.clusters],
    )


def open_map(index: Index) -> Map | None:
    """The newest map of an index, of any of its spaces.

    Those of other encoders, and those that cannot be read (which is logged), are left out; None if
    there is no other.
    """
    if isinstance(index.path, Address):
        return None
    spaces = {map_file(index.path, space.name): space for space in index.spaces()}
    files = [file for file in spaces if file.exists()]
    newest_first = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)
    return next(filter(None, (_read(file, spaces[file]) for file in newest_first)), None)


def _read(file: Path, space: Space) -> Map | None:
    """The map of a space; None if it is of another encoder, or cannot be read (which is logged)."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(file)
        about = json.loads(table.schema.metadata[KEY])
        columns = {name: table[name].to_numpy() for name in table.column_names}
        points = numpy.stack([columns["x"], columns["y"]], axis=1)
        found = Map(
            about["space"],
            about["fingerprint"],
            columns["passage"],
            columns["hash"],
            points,
            columns["group"],
            about["names"],
            about["typical"],
        )
    except (OSError, pyarrow.ArrowException, KeyError, TypeError, ValueError) as error:
        logger.warning("%s is damaged (%s); create it again with: semsearch map", file, error)
        return None
    return found if found.fingerprint == space.fingerprint else None


def unchanged_passages(index: Index, found: Map) -> Iterator[tuple[int, FoundPassage]]:
    """The rows of a map whose passages are still in the index, with the passages."""
    with index.read() as state:
        for start in range(0, len(found), BLOCK):
            ids = found.passage_ids[start : start + BLOCK].tolist()
            fetched = state.fetch(ids)
            for row, passage_id in enumerate(ids, start):
                passage = fetched.get(passage_id)
                if passage and _short_hash(passage.passage.text) == found.hashes[row]:
                    yield row, passage


def _short_hash(text: str) -> str:
    return text_hash(text)[:16]


def _distinct(names: list[str]) -> list[str]:
    """Number repeated names."""
    return [
        name if names.index(name) == i else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]
