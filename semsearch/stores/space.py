"""Embedding spaces: one encoder's vectors over the whole corpus."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from semsearch.arguments import shown
from semsearch.encoders.precision import Precision, described_precision
from semsearch.encoders.specs import unpinned
from semsearch.errors import ArgumentError, SpaceError, SpaceNotFoundError
from semsearch.protocols import Encoder
from semsearch.records import STORED_TYPES

logger = logging.getLogger(__name__)

NAME_MAX_CHARACTERS = 64


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
                f"it was made with, or encode the passages again: semsearch index --add-space "
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


def warn_of_cut_passages(encoder: Encoder, max_tokens: int) -> None:
    """Warn of an encoder that reads less than the passages of an index may hold."""
    if encoder.max_document_tokens < max_tokens:
        logger.warning(
            "%s reads %d tokens; passages here have up to %d, whose ends it will not see",
            encoder.spec,
            encoder.max_document_tokens,
            max_tokens,
        )


def check_stored_type(dtype: str | None) -> None:
    """Refuse a number type that no space can have.

    Raises:
        ArgumentError: it is neither one of `STORED_TYPES` nor None, which leaves the choice.
    """
    if dtype is not None and dtype not in STORED_TYPES:
        choices = " or ".join(f"'{name}'" for name in STORED_TYPES)
        raise ArgumentError(f"dtype must be {choices}, not {shown(dtype)}")


def free_name(spec: str, taken: Collection[str]) -> str:
    """A short name that is safe in a file name: `sentence-transformers/all-X` → `all-x`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", PurePath(unpinned(spec)).name.lower())
    slug = slug[:NAME_MAX_CHARACTERS].strip("-") or "space"
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


def find_space(spaces: Sequence[Space], name: str | None = None) -> Space:
    """The space called `name`; without a name, the first one.

    Raises:
        SpaceError: there is none of that name.
    """
    for space in spaces:
        if name is None or space.name == name:
            return space
    names = ", ".join(space.name for space in spaces)
    raise SpaceNotFoundError(f"no space '{name}' in this index (spaces: {names})")


def check_searchable(space: Space, spaces: Sequence[Space]) -> None:
    """Refuse to answer from a space that the index no longer has, or has not in full.

    Args:
        space: as it was when it was opened.
        spaces: those that the index has now.

    Raises:
        SpaceError: it was dropped, or lacks the vectors of some passages.
    """
    for found in spaces:
        if found.id == space.id:
            if not found.complete:
                raise SpaceError(
                    f"space '{space.name}' lacks vectors of some passages; complete it with: "
                    f"semsearch index --add-space {space.spec}"
                )
            return
    raise SpaceNotFoundError(f"space '{space.name}' was dropped from the index; open another one")
