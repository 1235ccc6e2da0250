"""A map of an index: the positions and groups of its passages, in a file beside the index."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy
from numpy.typing import NDArray

from semsearch.errors import (
    ArgumentError,
    IndexStoreError,
)
from semsearch.explore.clusters import cluster
from semsearch.explore.naming import group_names
from semsearch.explore.projection import OnProgress, Points, project
from semsearch.index import Index
from semsearch.search.options import check_whole_number
from semsearch.storage.address import Address
from semsearch.storage.interface import FoundPassage, text_hash
from semsearch.storage.words.forms import folded

logger = logging.getLogger(__name__)

#: The maximum number of passages on a map; of more, it shows a random sample.
SAMPLE = 100_000
#: The number of passages read at once.
BLOCK = 1_000


class Map(NamedTuple):
    """Passages in two dimensions, and their groups. Its file is one of `numpy.savez`."""

    space: str  #: the name of the embedding space that was projected
    fingerprint: str  #: of its encoder
    passage_ids: NDArray[Any]
    hashes: NDArray[Any]  #: of their texts, to hide passages that have changed
    points: Points  #: shape (n, 2)
    groups: NDArray[Any]  #: indices into `names`
    names: list[str]  #: of the groups, the largest first; see `group_names`
    typical: list[int]  #: of each group, the row of the passage nearest to its centroid

    def save(self, index: Path) -> None:
        """Write the map beside an index, atomically.

        Raises:
            IndexStoreError: it cannot be written.
        """
        draft = index / f"{self.space}.map.tmp"
        try:
            with draft.open("wb") as stream:
                numpy.savez(stream, **self._asdict())
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
        ArgumentError: the index is empty, or the seed is negative.
        ArgumentError: it is not in a directory, where the map would be stored.
        SpaceError: the space does not exist, or is not complete yet.
    """
    seed = check_whole_number("the seed", seed, 0)
    if isinstance(index.path, Address):
        raise ArgumentError(
            f"a map is stored in the directory of its index, and {index.path} has none; copy the "
            "index into one: semsearch copy"
        )
    found = index.space(space, complete=True)
    passages = index.passages(found.name)
    if not passages.texts:
        raise ArgumentError(f"the index {index.path} is empty; add documents before mapping it")
    rows = numpy.arange(len(passages.texts))
    if len(rows) > SAMPLE:
        rows = numpy.sort(numpy.random.default_rng(seed).choice(rows, SAMPLE, replace=False))
    vectors, texts = passages.vectors[rows], [passages.texts[row] for row in rows]
    points = project(vectors, seed, on_progress)
    on_progress("grouping", 0, 0)
    clusters = cluster(vectors, texts, seed=seed, words=0)
    groups = [numpy.array(group.members) for group in clusters.clusters]
    metadata = _metadata(index, [passages.document_ids[row] for row in rows])
    stop_words = set(map(folded, index.info().stop_words))
    encode = index.encoder(found).encode_documents
    names = group_names(texts, vectors, groups, encode, metadata, stop_words)
    return Map(
        found.name,
        found.fingerprint,
        passages.passage_ids[rows],
        numpy.array([_short_hash(text) for text in texts]),
        points,
        numpy.array(clusters.labels(), numpy.int32) - 1,
        names,
        [group.central for group in clusters.clusters],
    )


def _metadata(index: Index, ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """The metadata of documents; empty for those deleted meanwhile."""
    with index.read() as state:
        held = {one.id: one.metadata for block in state.scan(BLOCK) for one in block}
    return [held.get(one, {}) for one in ids]


def open_map(index: Index) -> Map | None:
    """The newest map of an index, of any of its spaces.

    Those of other encoders, and those that cannot be read (which is logged), are left out; None if
    there is no other.
    """
    if isinstance(index.path, Address):
        return None
    fingerprints = {map_file(index.path, one.name): one.fingerprint for one in index.spaces()}
    files = [file for file in fingerprints if file.exists()]
    for file in sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True):
        found = _read(file)
        if found is not None and found.fingerprint == fingerprints[file]:
            return found
    return None


def _read(file: Path) -> Map | None:
    """The map in a file; None if it cannot be read, which is logged."""
    try:
        with numpy.load(file) as arrays:
            held = {name: arrays[name] for name in Map._fields}
    except (OSError, EOFError, KeyError, ValueError, BadZipFile) as error:
        logger.warning("%s is damaged (%s); create it again with: semsearch map", file, error)
        return None
    lists = {name: held[name].tolist() for name in ("space", "fingerprint", "names", "typical")}
    return Map(**held | lists)


def unchanged_passages(index: Index, found: Map) -> Iterator[tuple[int, FoundPassage]]:
    """The rows of a map whose passages are still in the index, with the passages."""
    with index.read() as state:
        for start in range(0, len(found.points), BLOCK):
            ids = found.passage_ids[start : start + BLOCK].tolist()
            fetched = state.fetch(ids)
            for row, passage_id in enumerate(ids, start):
                passage = fetched.get(passage_id)
                if passage and _short_hash(passage.passage.text) == found.hashes[row]:
                    yield row, passage


def _short_hash(text: str) -> str:
    return text_hash(text)[:16]
