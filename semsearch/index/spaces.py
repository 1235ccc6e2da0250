"""Embedding spaces: one encoder's vectors over the whole corpus."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy
from sqlalchemy import Connection, insert, select

from semsearch.arguments import shown
from semsearch.encoders.precision import Precision, described_precision
from semsearch.encoders.specs import pinned, unpinned
from semsearch.errors import ArgumentError, IndexFormatError, SpaceError
from semsearch.index.schema import spaces
from semsearch.index.stored import DamageError, stored_json
from semsearch.protocols import Encoder, Matrix
from semsearch.records import STORED_TYPES
from semsearch.vectors import off_unit

__all__ = [
    "Space",
    "add_space",
    "all_spaces",
    "check_searchable",
    "check_stored_type",
    "find_space",
    "warn_of_cut_passages",
]

logger = logging.getLogger(__name__)

MAX_DIMENSION = 1_000_000

#: File names begin with the name of a space; the longest that a file system takes is 255 bytes.
_NAME = re.compile(r"[a-z0-9_-]{1,200}")
_NAME_MAX_CHARACTERS = 64


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

    @property
    def precision(self) -> Precision:
        """How its encoder is to be loaded; the int8 of a space is its documents' own."""
        return described_precision(self.description)

    def to_bytes(self, matrix: Matrix) -> list[bytes]:
        """Vectors as SQLite keeps them: each as little-endian numbers of the space's type."""
        if matrix.shape[1] != self.dimension:
            raise DamageError(f"space '{self.name}' has not the width of its encoder's vectors")
        data = matrix.astype(self._stored_type).tobytes()
        width = self.vector_bytes
        return [data[start : start + width] for start in range(0, len(data), width)]

    def from_bytes(self, rows: Sequence[bytes]) -> Matrix:
        """Stored vectors as a matrix of unit rows, shape (len(rows), dimension).

        Raises:
            IndexFormatError: one of them is none of this space.
        """
        matrix = self.stored_matrix(rows)
        if off_unit(matrix).any():
            raise self._damage()
        if self.dtype == "float16":  # rounding changed their length
            matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix

    def stored_matrix(self, rows: Sequence[bytes]) -> Matrix:
        """Stored vectors as they are, shape (len(rows), dimension).

        Raises:
            IndexFormatError: their sizes are not those of vectors of this space.
        """
        if any(len(row) != self.vector_bytes for row in rows):
            raise self._damage()
        flat = numpy.frombuffer(b"".join(rows), self._stored_type)
        return flat.reshape(len(rows), self.dimension).astype(numpy.float32)

    def damaged(self, rows: Sequence[bytes]) -> list[int]:
        """Which stored vectors are none of this space: of another size, or not of unit length."""
        sized = [place for place, row in enumerate(rows) if len(row) == self.vector_bytes]
        off = off_unit(self.stored_matrix([rows[place] for place in sized]))
        sound = {place for place, is_off in zip(sized, off.tolist(), strict=True) if not is_off}
        return [place for place in range(len(rows)) if place not in sound]

    @property
    def vector_bytes(self) -> int:
        """How long a stored vector is."""
        return self.dimension * self._stored_type.itemsize

    def check(self, encoder: Encoder, index: Path) -> None:
        """Refuse an encoder whose vectors mean something else.

        Args:
            encoder: what the space's spec names now.
            index: the directory.

        Raises:
            SpaceError: its fingerprint is not the space's.
        """
        if encoder.fingerprint != self.fingerprint:
            raise SpaceError(
                f"space '{self.name}' was made by another model than '{encoder.spec}' is now, or "
                "by a version of semsearch that looked at fewer of its files (fingerprint "
                f"{self.fingerprint[:12]} there, {encoder.fingerprint[:12]} here); use the model "
                f"it was made with, or encode the passages anew: semsearch index --add-space "
                f"{encoder.spec} --index {index}, then --drop-space {self.name}"
            )

    def check_dtype(self, dtype: str | None) -> None:
        """Refuse another number type than the one that its vectors are stored in.

        Raises:
            SpaceError: it is another one.
        """
        check_stored_type(dtype)
        if dtype not in (None, self.dtype):
            raise SpaceError(
                f"space '{self.name}' stores {self.dtype}, not {dtype}; "
                "the type is chosen when a space is made"
            )

    def _damage(self) -> IndexFormatError:
        return IndexFormatError(
            f"vectors of space '{self.name}' are damaged; see: semsearch verify"
        )

    @property
    def _stored_type(self) -> numpy.dtype[Any]:
        return numpy.dtype(self.dtype).newbyteorder("<")


def warn_of_cut_passages(encoder: Encoder, max_tokens: int) -> None:
    """Warn of an encoder that reads less than the passages of an index may hold."""
    if encoder.max_document_tokens < max_tokens:
        logger.warning(
            "%s reads %d tokens; passages here have up to %d, whose ends it will not see",
            encoder.spec,
            encoder.max_document_tokens,
            max_tokens,
        )


def all_spaces(connection: Connection) -> list[Space]:
    """The spaces of an index, oldest first."""
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


def _checked(space: Space) -> Space:
    """A space as `add_space` makes them; names of files are made of its name."""
    if (
        not _NAME.fullmatch(space.name)
        or space.dtype not in STORED_TYPES
        or not 0 < space.dimension <= MAX_DIMENSION
    ):
        raise DamageError(f"{space.name[:40]!r} is no embedding space")
    return space


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


def check_stored_type(dtype: str | None) -> None:
    """Refuse a number type that no space can have.

    Raises:
        ArgumentError: it is neither one of `STORED_TYPES` nor None, which leaves the choice.
    """
    if dtype is not None and dtype not in STORED_TYPES:
        choices = " or ".join(f"'{name}'" for name in STORED_TYPES)
        raise ArgumentError(f"dtype must be {choices}, not {shown(dtype)}")


def check_searchable(connection: Connection, space: Space) -> None:
    """Refuse to answer from a space that the index no longer has, or has not in full.

    Raises:
        SpaceError: it was dropped, or lacks the vectors of some passages.
    """
    for found in all_spaces(connection):
        if found.id == space.id:
            if not found.complete:
                raise SpaceError(
                    f"space '{space.name}' lacks vectors of some passages; complete it with: "
                    f"semsearch index --add-space {space.spec}"
                )
            return
    raise SpaceError(f"space '{space.name}' was dropped from the index; open another one")


def add_space(
    connection: Connection, encoder: Encoder, dtype: str | None = None, *, complete: bool
) -> Space:
    """A new space for an encoder's vectors, named after its spec."""
    check_stored_type(dtype)
    description = dict(encoder.description())
    spec = pinned(encoder.spec, description.get("commit"))
    name = _free_name(spec, {space.name for space in all_spaces(connection)})
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
    return find_space(connection, name)


def _free_name(spec: str, taken: set[str]) -> str:
    """A short name that is safe in a file name: `sentence-transformers/all-X` → `all-x`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", PurePath(unpinned(spec)).name.lower())
    slug = slug[:_NAME_MAX_CHARACTERS].strip("-") or "space"
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name
