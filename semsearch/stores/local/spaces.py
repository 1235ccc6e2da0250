"""Embedding spaces of a local store: their rows, their vectors, and search in these."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from sqlalchemy import Connection, func, insert, select

from semsearch.errors import DamagedIndexError, IndexFormatError
from semsearch.protocols import Encoder, Matrix, off_unit
from semsearch.stores.local.schema import (
    chunks,
    documents,
    get_setting,
    read_rows,
    snapshots,
    spaces,
)
from semsearch.stores.local.snapshot import Snapshot, SnapshotRecord, open_snapshot, warn_of_fault
from semsearch.stores.protocol import Space, described_space
from semsearch.vector_indexes import FLAT
from semsearch.vector_indexes.flat import FlatIndex, Ids, VectorIndex


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of a store, oldest first."""
    rows = connection.execute(select(spaces).order_by(spaces.c.space_id))
    return [
        Space(
            id=row.space_id,
            name=row.name,
            spec=row.spec,
            fingerprint=row.fingerprint,
            dimension=row.dimension,
            dtype=row.dtype,
            complete=bool(row.complete),
            description=json.loads(row.description),
        )
        for row in rows
    ]


def insert_space(
    connection: Connection, encoder: Encoder, dtype: str | None, *, complete: bool
) -> Space:
    """Add a space for an encoder's vectors, named after its spec."""
    new = described_space(encoder, dtype, all_spaces(connection), complete=complete)
    row = new._asdict() | {"complete": int(complete), "description": json.dumps(new.description)}
    del row["id"]  # SQLite's, which is never used again
    connection.execute(insert(spaces).values(row))
    return next(space for space in all_spaces(connection) if space.name == new.name)


def to_bytes(space: Space, matrix: Matrix) -> list[bytes]:
    """Vectors as stored in SQLite: little-endian numbers of the space's type."""
    if matrix.shape[1] != space.dimension:
        raise DamagedIndexError(
            f"space '{space.name}' does not have the dimension of its encoder's vectors"
        )
    data = matrix.astype(_stored_type(space)).tobytes()
    width = _vector_bytes(space)
    return [data[start : start + width] for start in range(0, len(data), width)]


def from_bytes(space: Space, rows: Sequence[bytes]) -> Matrix:
    """Stored vectors as a matrix of unit rows, shape (len(rows), dimension).

    Raises:
        IndexFormatError: one of them is not a vector of this space.
    """
    matrix = stored_matrix(space, rows)
    if off_unit(matrix).any():
        raise _damage(space)
    if space.dtype == "float16":  # rounding changed their length
        matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def stored_matrix(space: Space, rows: Sequence[bytes]) -> Matrix:
    """Stored vectors without checks of their length, shape (len(rows), dimension).

    Raises:
        IndexFormatError: a row does not have the size of a vector of this space.
    """
    width = _vector_bytes(space)
    if set(map(len, rows)) - {width}:
        raise _damage(space)
    flat = numpy.frombuffer(b"".join(rows), _stored_type(space))
    return flat.reshape(len(rows), space.dimension).astype(numpy.float32)


def damaged(space: Space, rows: Sequence[bytes]) -> list[int]:
    """The positions of damaged vectors: of the wrong size, or not of unit length."""
    width = _vector_bytes(space)
    sized = [place for place, row in enumerate(rows) if len(row) == width]
    off = off_unit(stored_matrix(space, [rows[place] for place in sized]))
    sound = {place for place, is_off in zip(sized, off.tolist(), strict=True) if not is_off}
    return [place for place in range(len(rows)) if place not in sound]


def _vector_bytes(space: Space) -> int:
    return space.dimension * _stored_type(space).itemsize


def _stored_type(space: Space) -> numpy.dtype[Any]:
    return numpy.dtype(space.dtype).newbyteorder("<")


def _damage(space: Space) -> IndexFormatError:
    return DamagedIndexError(f"vectors of space '{space.name}' are damaged; see: semsearch verify")


#: Vectors read from the database at once.
BLOCK_ROWS = 8192

_VECTORS = """
SELECT chunk_id, vector FROM vectors WHERE space_id = ? AND chunk_id > ? ORDER BY chunk_id
"""

#: The largest rounding difference between the scores of equal unit vectors in float32.
ROUNDING = 2e-6

#: Passages searched in place of deleted ones and further ones of a document.
SPARE = 8

#: The setting with the number of passages ever deleted.
DELETED = "deleted"


def deleted_before(space: Space) -> str:
    """The setting with the number of passages deleted before the snapshot was written."""
    return f"deleted_before_{space.id}"


class _Origin(NamedTuple):
    """The base of a view; while it is unchanged, later states only append vectors."""

    record: SnapshotRecord | None
    filled: int  # how often spaces were completed with vectors of older chunks

    @classmethod
    def of(cls, connection: Connection, space: Space) -> _Origin:
        return cls(snapshot_record(connection, space), get_setting(connection, "filled", 0))


class _Estimates(NamedTuple):
    passages_per_document: float  # by the highest numbers, as counting takes long
    deleted: int  # passages that the snapshot may still have

    @classmethod
    def of(cls, connection: Connection, space: Space) -> _Estimates:
        highest = [
            connection.execute(select(func.coalesce(func.max(number), 0))).scalar_one()
            for number in (chunks.c.chunk_id, documents.c.document_id)
        ]
        deleted = get_setting(connection, DELETED, 0)
        before = get_setting(connection, deleted_before(space), -1)
        return cls(float(highest[0] / highest[1]) if highest[1] else 1.0, deleted - before)


class SpaceView:
    """The vectors of a space in one state: a FAISS snapshot and the tail, newer vectors.

    The tail is searched exactly. Vectors deleted since the snapshot are still found; callers drop
    ids that the database no longer has.
    """

    def __init__(
        self,
        origin: _Origin,
        snapshot: Snapshot | None,
        tail: FlatIndex,
        estimates: _Estimates,
    ) -> None:
        self._origin = origin
        self._snapshot = snapshot
        self._tail = tail
        self._estimates = estimates
        indexes: list[VectorIndex] = [snapshot.index, tail] if snapshot else [tail]
        self._indexes = [index for index in indexes if len(index)]

    @classmethod
    def load(
        cls,
        connection: Connection,
        directory: Path | None,
        space: Space,
        missing: Collection[str] = (),
    ) -> SpaceView:
        """The view of the state that `connection` reads.

        Args:
            connection: in a transaction.
            directory: the directory of the snapshot; None if it is gone.
            space: the space.
            missing: snapshots known to be missing; the vectors in SQLite are searched instead.

        Raises:
            FileNotFoundError: the file is missing: a newer state has a newer snapshot, or the file
                was deleted.
        """
        origin = _Origin.of(connection, space)
        record, snapshot = origin.record, None
        if record and directory:
            if record.file in missing and not (directory / record.file).exists():
                warn_of_fault(directory / record.file, "is missing")
            else:
                snapshot = open_snapshot(directory, record)
        after = record.last_chunk_id if record and snapshot else 0
        tail = _flat_index(space, list(vector_blocks(connection, space, after)))
        return cls(origin, snapshot, tail, _Estimates.of(connection, space))

    def extended(self, connection: Connection, space: Space) -> SpaceView | None:
        """The view of a later state; None unless only the tail has grown."""
        if _Origin.of(connection, space) != self._origin:
            return None
        last = int(self._indexes[-1].ids[-1]) if self._indexes else 0
        known = self._tail.ids, self._tail.matrix
        blocks = [known, *vector_blocks(connection, space, last)]
        return SpaceView(
            self._origin,
            self._snapshot,
            _flat_index(space, blocks),
            _Estimates.of(connection, space),
        )

    def is_intact(self) -> bool:
        """Whether the memory-mapped file of the snapshot is unchanged since it was opened."""
        return self._snapshot is None or self._snapshot.is_intact()

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    def reach(self, k: int) -> int:
        """How many of the nearest passages to search for the best ones of `k` documents.

        Further passages of a document and deleted ones take up places.
        """
        per_document, deleted = self._estimates
        spare = SPARE if per_document > 1 or deleted else 0
        return math.ceil(k * min(2, per_document)) + spare

    @property
    def plan(self) -> str:
        """A description of how it is searched."""
        from semsearch.texts import quantity

        parts = []
        if self._snapshot:
            vectors = quantity(len(self._snapshot.index), "vector")
            parts.append(f"{self._snapshot.index.plan} over {vectors}")
        if len(self._tail):
            parts.append(f"exact over {len(self._tail):,} new vectors")
        return ", ".join(parts) or "nothing to search"

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """The `n` nearest chunks of each query, best first; equal scores by chunk id.

        Args:
            queries: unit vectors, shape (m, dimension).
            n: the number of chunks; missing results have the id -1.
            allowed: sorted ids of the allowed chunks; None allows all.

        Returns:
            Cosines and chunk ids, both of shape (m, n), or narrower if there are fewer vectors.
        """
        if {index.dimension for index in (self._tail, *self._indexes)} != {queries.shape[1]}:
            raise DamagedIndexError("the vectors of the space do not have its encoder's dimension")
        return self._ranked(queries, n, min(n + 1, len(self)), allowed)

    def _ranked(
        self, queries: Matrix, n: int, reach: int, allowed: Ids | None
    ) -> tuple[Matrix, Ids]:
        """`search` among the `reach` nearest chunks, or more if the n-th score is not unique."""
        scores, ids = self._nearest(queries, reach, allowed)
        close = (scores[:, :-1] - scores[:, 1:] <= ROUNDING) & (ids[:, 1:] >= 0)
        for row in numpy.flatnonzero(close.any(axis=1)):
            self._settle_ties(queries[row], scores[row], ids[row], numpy.flatnonzero(close[row]))
        order = numpy.lexsort((ids, -scores, ids < 0), axis=1)[:, :n]
        best = numpy.take_along_axis(scores, order, axis=1)
        best_ids = numpy.take_along_axis(ids, order, axis=1)
        if scores.shape[1] > n and reach < len(self):
            shares = (best[:, -1] - scores.min(axis=1) <= ROUNDING) & (ids >= 0).all(axis=1)
            if shares.any():
                farther = self._ranked(queries[shares], n, min(4 * reach, len(self)), allowed)
                best[shares], best_ids[shares] = farther
        return best, best_ids

    def _nearest(self, queries: Matrix, n: int, allowed: Ids | None) -> tuple[Matrix, Ids]:
        """The `n` nearest, best first; equal scores in any order."""
        found = [index.search(queries, n, allowed) for index in self._indexes]
        if len(found) == 1:
            return found[0]
        scores, ids = (numpy.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        order = numpy.lexsort((-scores, ids < 0), axis=1)[:, :n]
        return (
            numpy.take_along_axis(scores, order, axis=1),
            numpy.take_along_axis(ids, order, axis=1),
        )

    def _settle_ties(self, query: Matrix, scores: Matrix, ids: Ids, close: Ids) -> None:
        """Recompute scores that differ by rounding only from the next ones, in place.

        A matrix product rounds a row depending on its position. Recomputed, equal vectors have
        equal scores, in the snapshot and in the tail.
        """
        places = numpy.union1d(close, close + 1)
        exact = query.astype(numpy.float64)
        for start in range(0, len(places), BLOCK_ROWS):
            block = places[start : start + BLOCK_ROWS]
            scores[block] = (self._vectors(ids[block]) * exact).sum(axis=1)

    def _vectors(self, ids: Ids) -> Matrix:
        """The vectors of chunks that are in the tail or in the snapshot."""
        found = numpy.empty((len(ids), self._indexes[0].dimension), numpy.float32)
        for index in self._indexes:
            is_in = (index.ids[0] <= ids) & (ids <= index.ids[-1])
            found[is_in] = index.vectors(ids[is_in])
        return found


def snapshot_record(connection: Connection, space: Space) -> SnapshotRecord | None:
    """The database's record of a space's snapshot, if it has one."""
    row = connection.execute(select(snapshots).where(snapshots.c.space_id == space.id)).first()
    return SnapshotRecord(**row._mapping) if row else None


def vector_blocks(
    connection: Connection, space: Space, after: int = 0
) -> Iterator[tuple[Ids, Matrix]]:
    """Blocks of ids and vectors of the chunks above an id, in ascending order of ids."""
    with read_rows(connection, _VECTORS, (space.id, after)) as cursor:
        while rows := cursor.fetchmany(BLOCK_ROWS):
            ids, stored = zip(*rows, strict=True)
            yield numpy.array(ids, numpy.int64), from_bytes(space, stored)


def _flat_index(space: Space, blocks: Sequence[tuple[Ids, Matrix]]) -> FlatIndex:
    """An exact index of vectors in memory."""
    count = sum(len(ids) for ids, _ in blocks)
    return FlatIndex.build(FLAT, space.dimension, count, lambda: blocks, recall=1)
