"""Embedding spaces: one encoder's vectors over the whole corpus."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy
from sqlalchemy import Connection, insert, select

from semsearch.errors import ArgumentError, IndexFormatError, SpaceError
from semsearch.index.schema import spaces
from semsearch.protocols import Encoder, Matrix

__all__ = ["STORED_TYPES", "Space", "add_space", "all_spaces", "find_space"]

#: The number types in which vectors can be kept.
STORED_TYPES = ("float32", "float16")


class Space(NamedTuple):
    """What an index knows of the encoder that made a set of its vectors."""

    id: int
    name: str
    spec: str
    fingerprint: str
    dimension: int
    dtype: str
    complete: bool  # False while chunks from before it still lack their vectors
    description: dict[str, Any]

    def to_bytes(self, vector: Matrix) -> bytes:
        """One vector as SQLite keeps it: little-endian numbers of the space's type."""
        return vector.astype(self._stored_type).tobytes()

    def from_bytes(self, rows: Sequence[bytes]) -> Matrix:
        """Stored vectors as a matrix of unit rows, shape (len(rows), dimension)."""
        matrix = self.stored_matrix(rows)
        if self.dtype == "float16":  # rounding changed their length
            matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix

    def stored_matrix(self, rows: Sequence[bytes]) -> Matrix:
        """Stored vectors as they are, shape (len(rows), dimension).

        Raises:
            IndexFormatError: their sizes are not those of vectors of this space.
        """
        data = b"".join(rows)
        if len(data) != len(rows) * self.dimension * self._stored_type.itemsize:
            raise IndexFormatError(
                f"vectors of space '{self.name}' are damaged; see: semsearch verify"
            )
        flat = numpy.frombuffer(data, self._stored_type)
        return flat.reshape(-1, self.dimension).astype(numpy.float32)

    def check(self, encoder: Encoder) -> None:
        """Refuse an encoder whose vectors mean something else.

        Raises:
            SpaceError: its fingerprint is not the space's.
        """
        if encoder.fingerprint != self.fingerprint:
            raise SpaceError(
                f"space '{self.name}' was made by another model than '{encoder.spec}' is now: "
                f"fingerprint {self.fingerprint[:12]} there, {encoder.fingerprint[:12]} here; "
                "use the model it was made with, or index anew"
            )

    @property
    def _stored_type(self) -> numpy.dtype[Any]:
        return numpy.dtype(self.dtype).newbyteorder("<")


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of an index, oldest first."""
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


def find_space(connection: Connection, name: str | None = None) -> Space:
    """The space called `name`; without a name, the first one.

    Raises:
        SpaceError: there is none of that name.
    """
    found = all_spaces(connection)
    for space in found:
        if name is None or space.name == name:
            return space
    names = ", ".join(space.name for space in found)
    raise SpaceError(f"no space '{name}' in this index (spaces: {names})")


def add_space(
    connection: Connection, encoder: Encoder, dtype: str = "float32", *, complete: bool
) -> Space:
    """A new space for an encoder's vectors, named after its spec."""
    if dtype not in STORED_TYPES:
        raise ArgumentError(f"vectors are stored as {' or '.join(STORED_TYPES)}, not '{dtype}'")
    name = _free_name(encoder.spec, {space.name for space in all_spaces(connection)})
    connection.execute(
        insert(spaces).values(
            name=name,
            spec=encoder.spec,
            fingerprint=encoder.fingerprint,
            dimension=encoder.dimension,
            dtype=dtype,
            complete=int(complete),
            description=json.dumps(dict(encoder.description())),
        )
    )
    return find_space(connection, name)


def _free_name(spec: str, taken: set[str]) -> str:
    """A short name that is safe in a file name: `sentence-transformers/all-X` → `all-x`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", PurePath(spec).name.lower()).strip("-") or "space"
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name
