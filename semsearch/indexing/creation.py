"""Create an index, or check that an existing one has the spaces of the given encoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semsearch.encoders import DEFAULT_ENCODER, load_encoder
from semsearch.encoders.given import SentenceTransformerEncoder, is_sentence_transformer
from semsearch.encoders.specs import Precision, described_precision
from semsearch.errors import (
    ArgumentError,
    IndexNotFoundError,
    SpaceError,
    check_items,
    quoted,
    shown,
)
from semsearch.protocols import Encoder
from semsearch.storage import create_store, open_store
from semsearch.storage.interface import Store, closed_on_error
from semsearch.storage.spaces import Space, warn_of_cut_passages


def create_index(
    path: Path,
    encoders: Any,
    precision: str | None = None,
    device: str | None = None,
) -> tuple[Store, list[Encoder]]:
    """Open the index at a path, or create it; see `Index.create`.

    Returns:
        Its store, and the encoders that were loaded for its spaces.
    """
    wanted = Precision(precision or Precision.AUTO)
    given = None if encoders is None else listed_encoders(encoders)
    if given == []:
        raise ArgumentError("an index needs at least one encoder")
    try:
        store = open_store(path)
    except IndexNotFoundError:
        loaded = _loaded(given or [DEFAULT_ENCODER], wanted, device)
        max_tokens = loaded[0].max_document_tokens
        for encoder in loaded:
            warn_of_cut_passages(encoder, max_tokens)
        return create_store(path, max_tokens, loaded), loaded
    with closed_on_error(store), store.read() as reader:
        spaces = reader.spaces()
        loaded = [] if given is None else _loaded(given, wanted, device)
        if given is not None:
            spaces = [_space_of(encoder, spaces, path) for encoder in loaded]
        for space in spaces:
            _check_precision(space, wanted)
        usable = [
            encoder
            for item, encoder, space in zip(given or (), loaded, spaces, strict=False)
            if encoder is item or described_precision(encoder.description()) is space.precision
        ]
        return store, usable


def listed_encoders(encoders: Any) -> list[Any]:
    """One spec or encoder, or several, as a list."""
    if isinstance(encoders, str) or _is_encoder(encoders) or is_sentence_transformer(encoders):
        encoders = [encoders]
    return [
        SentenceTransformerEncoder(item) if is_sentence_transformer(item) else item
        for item in check_items("encoders", encoders, "specs or encoders")
    ]


def check_encoders(encoders: Sequence[Encoder]) -> None:
    """Refuse what is no encoder, and encoders given twice.

    Raises:
        ArgumentError: an item is not an encoder, or two have one fingerprint.
    """
    known = set()
    for encoder in encoders:
        if not _is_encoder(encoder):
            raise ArgumentError(
                "encoders must be encoders (load_encoder and encoder_from return one) or, for "
                f"create, specs, not {shown(encoder)}"
            )
        if encoder.fingerprint in known:
            raise ArgumentError(f"encoder '{encoder.spec}' is given twice; name each model once")
        known.add(encoder.fingerprint)


def _is_encoder(value: object) -> bool:
    # Not by `isinstance`: that of a protocol reads its properties, some of which load the model.
    return not isinstance(value, type) and hasattr(value, "encode_documents")


def _loaded(given: Sequence[Any], precision: Precision, device: str | None) -> list[Encoder]:
    """Encoders, of which some were given as specs."""
    loaded = [
        load_encoder(item, device, precision) if isinstance(item, str) else item for item in given
    ]
    check_encoders(loaded)
    return loaded


def _space_of(encoder: Encoder, spaces: Sequence[Space], path: Path) -> Space:
    """The space of an encoder.

    Raises:
        SpaceError: there is none.
    """
    for space in spaces:
        if space.fingerprint == encoder.fingerprint:
            return space
    names = ", ".join(space.name for space in spaces)
    raise SpaceError(
        f"{path} has no space of encoder '{encoder.spec}' (spaces: {names}); add one with: "
        f"semsearch configure --add-space {quoted(encoder.spec)} --index {quoted(str(path))}"
    )


def _check_precision(space: Space, precision: Precision) -> None:
    """Check that a space was made in a precision; the automatic one is the space's own.

    Raises:
        SpaceError: it was made in another one.
    """
    made = space.description.get("precision", precision.value)
    if precision is not Precision.AUTO and made != precision.value:
        raise SpaceError(
            f"space '{space.name}' was made in {made}, not {precision.value}; "
            "the precision is chosen when a space is made"
        )
