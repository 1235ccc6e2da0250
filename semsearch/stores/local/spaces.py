"""The embedding spaces of a local store, and how their vectors are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy
from sqlalchemy import Connection, insert, select

from semsearch.encoders.specs import pinned
from semsearch.errors import DamagedIndexError, IndexFormatError
from semsearch.protocols import Encoder, Matrix
from semsearch.records import STORED_TYPES
from semsearch.stores.local.schema import spaces
from semsearch.stores.local.stored import DamageError, stored_json
from semsearch.stores.space import Space, check_stored_type, free_name
from semsearch.vectors import off_unit

MAX_DIMENSION = 1_000_000

#: File names begin with the name of a space; the longest that a file system takes is 255 bytes.
_NAME = re.compile(r"[a-z0-9_-]{1,200}")


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of a store, oldest first."""
    rows = connection.execute(select(spaces).order_by(spaces.c.space_id))
    return [
        _checked(
            Space(
                id=row.space_id,
                name=row.name,
                spec=row.spec,
                fingerprint=row.fingerprint,
                dimension=row.dimension,
                dtype=row.dtype,
                complete=bool(row.complete),
                description=stored_json(row.description, dict),
            )
        )
        for row in rows
    ]


def insert_space(
    connection: Connection, encoder: Encoder, dtype: str | None, *, complete: bool
) -> Space:
    """A new space for an encoder's vectors, named after its spec."""
    check_stored_type(dtype)
    description = dict(encoder.description())
    spec = pinned(encoder.spec, description.get("commit"))
    name = free_name(spec, {space.name for space in all_spaces(connection)})
    connection.execute(
        insert(spaces).values(
            name=name,
            spec=spec,
            fingerprint=encoder.fingerprint,
            dimension=encoder.dimension,
            dtype=dtype or STORED_TYPES[0],
            complete=int(complete),
            description=json.dumps(description),
        )
    )
    return next(space for space in all_spaces(connection) if space.name == name)


def to_bytes(space: Space, matrix: Matrix) -> list[bytes]:
    """Vectors as SQLite keeps them: each as little-endian numbers of the space's type."""
    if matrix.shape[1] != space.dimension:
        raise DamageError(f"space '{space.name}' is not as wide as its encoder's vectors")
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
    """Stored vectors as they are, shape (len(rows), dimension).

    Raises:
        IndexFormatError: their sizes are not those of vectors of this space.
    """
    width = _vector_bytes(space)
    if any(len(row) != width for row in rows):
        raise _damage(space)
    flat = numpy.frombuffer(b"".join(rows), _stored_type(space))
    return flat.reshape(len(rows), space.dimension).astype(numpy.float32)


def damaged(space: Space, rows: Sequence[bytes]) -> list[int]:
    """Which stored vectors are not of this space: of another size, or not of unit length."""
    width = _vector_bytes(space)
    sized = [place for place, row in enumerate(rows) if len(row) == width]
    off = off_unit(stored_matrix(space, [rows[place] for place in sized]))
    sound = {place for place, is_off in zip(sized, off.tolist(), strict=True) if not is_off}
    return [place for place in range(len(rows)) if place not in sound]


def _checked(space: Space) -> Space:
    """A space as `insert_space` makes them; names of files are made of its name."""
    if (
        not _NAME.fullmatch(space.name)
        or space.dtype not in STORED_TYPES
        or not 0 < space.dimension <= MAX_DIMENSION
    ):
        raise DamageError(f"{space.name[:40]!r} is no embedding space")
    return space


def _vector_bytes(space: Space) -> int:
    return space.dimension * _stored_type(space).itemsize


def _stored_type(space: Space) -> numpy.dtype[Any]:
    return numpy.dtype(space.dtype).newbyteorder("<")


def _damage(space: Space) -> IndexFormatError:
    return DamagedIndexError(f"vectors of space '{space.name}' are damaged; see: semsearch verify")
