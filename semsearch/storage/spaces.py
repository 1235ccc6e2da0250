"""Embedding spaces: one encoder's vectors of all passages, with a record of the encoder."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from semsearch.encoders.specs import Precision, described_precision, pinned, unpinned
from semsearch.errors import SpaceError, quoted
from semsearch.protocols import Encoder

logger = logging.getLogger(__name__)


class Space(NamedTuple):
    """An embedding space: one encoder's vectors of all passages, with a record of the encoder."""

    id: int
    name: str
    spec: str
    fingerprint: str
    dimension: int
    complete: bool  # False while some passages have no vector yet
    description: dict[str, Any]

    @property
    def precision(self) -> Precision:
        """The precision with which to load its encoder."""
        return described_precision(self.description)

    def check(self, encoder: Encoder, index: Path) -> None:
        """Raise SpaceError if an encoder is another model than that of the space."""
        if encoder.fingerprint != self.fingerprint:
            raise SpaceError(
                f"space '{self.name}' was made by another model than the current '{encoder.spec}' "
                f"(fingerprint {self.fingerprint[:12]} then, {encoder.fingerprint[:12]} now); "
                "restore the original model, or encode the passages again: semsearch configure "
                f"--add-space {quoted(encoder.spec)} --index {quoted(str(index))}, "
                f"then --drop-space {self.name}"
            )

    def check_complete(self, index: Path | None = None) -> None:
        """Raise SpaceError while some passages have no vector."""
        if not self.complete:
            place = "" if index is None else f" --index {quoted(str(index))}"
            raise SpaceError(
                f"space '{self.name}' lacks vectors of some passages; complete it with: "
                f"semsearch configure --add-space {quoted(self.spec)}{place}"
            )


def warn_of_cut_passages(encoder: Encoder, max_tokens: int) -> None:
    """Log a warning if an encoder reads less than the longest passages of an index."""
    if encoder.max_document_tokens < max_tokens:
        logger.warning(
            "%s reads %d tokens; passages here have up to %d, and long ones are truncated",
            encoder.spec,
            encoder.max_document_tokens,
            max_tokens,
        )


def free_name(spec: str, taken: Collection[str]) -> str:
    """A short unused name, safe in file names: `sentence-transformers/all-X` → `all-x`."""
    words = re.findall("[a-z0-9_-]+", PurePath(unpinned(spec).partition("@http")[0]).name.lower())
    slug = "-".join(words).strip("-") or "space"
    names = chain([slug], (f"{slug}-{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def described_space(encoder: Encoder, spaces: Sequence[Space], *, complete: bool) -> Space:
    """A new space beside others for an encoder's vectors, named after its spec."""
    description = dict(encoder.description())
    spec = pinned(encoder.spec, description.get("commit"))
    return Space(
        id=1 + max((space.id for space in spaces), default=0),
        name=free_name(spec, {space.name for space in spaces}),
        spec=spec,
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        complete=complete,
        description=description,
    )


def find_space(spaces: Sequence[Space], name: str | None = None) -> Space:
    """The space with this name; without a name, the first. Raises SpaceError if there is none."""
    for space in spaces:
        if name is None or space.name == name:
            return space
    names = ", ".join(space.name for space in spaces)
    raise SpaceError(f"no space '{name}' in this index (spaces: {names})")


def check_searchable(space: Space, spaces: Sequence[Space]) -> None:
    """Raise SpaceError if a space is not among these, or incomplete there."""
    for present in spaces:
        if (present.id, present.fingerprint) == (space.id, space.fingerprint):
            present.check_complete()
            return
    raise SpaceError(f"space '{space.name}' was dropped from the index; open another one")
