"""Embedding spaces of a local store: their rows, and their vectors as SQLite stores them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from sqlalchemy import Connection, insert, select

from semsearch.protocols import Encoder, Matrix
from semsearch.storage.spaces import Space, described_space
from semsearch.storage.sqlite.schema import spaces
from semsearch.vector_indexes import Ids

#: Vectors read from the database at once.
BLOCK_ROWS = 8192

_VECTORS = """
SELECT passage_id, vector FROM vectors WHERE space_id = ? AND passage_id > ? ORDER BY passage_id
"""


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of a store, oldest first."""
    rows = connection.execute(select(spaces).order_by(spaces.c.space_id))
    return [
        Space._make([*record, bool(complete), json.loads(description)])
        for *record, complete, description in rows
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
    data = matrix.astype(_stored_type(space)).tobytes()
    width = vector_bytes(space)
    return [data[start : start + width] for start in range(0, len(data), width)]


def from_bytes(space: Space, rows: Sequence[bytes]) -> Matrix:
    """Stored vectors as a matrix of unit rows, shape (len(rows), dimension)."""
    matrix = stored_matrix(space, rows)
    if space.dtype == "float16":  # rounding changed their length
        matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def stored_matrix(space: Space, rows: Sequence[bytes]) -> Matrix:
    """Stored vectors as they are, shape (len(rows), dimension)."""
    numbers = numpy.frombuffer(b"".join(rows), _stored_type(space))
    return numbers.reshape(len(rows), space.dimension).astype(numpy.float32)


def vector_blocks(
    connection: Connection, space: Space, after: int = 0
) -> Iterator[tuple[Ids, Matrix]]:
    """Blocks of ids and vectors of the passages above an id, in ascending order of ids."""
    result = connection.exec_driver_sql(_VECTORS, (space.id, after))
    for rows in result.partitions(BLOCK_ROWS):
        ids, stored = zip(*rows, strict=True)
        yield numpy.array(ids, numpy.int64), from_bytes(space, stored)


def vector_bytes(space: Space) -> int:
    """The size of a stored vector."""
    return space.dimension * _stored_type(space).itemsize


def _stored_type(space: Space) -> numpy.dtype[Any]:
    return numpy.dtype(space.dtype).newbyteorder("<")
