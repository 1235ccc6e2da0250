"""Create an index, or check that an existing one has the spaces of the given encoders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from semsearch.arguments import check_choice, check_items, shown
from semsearch.encoders import DEFAULT_ENCODER, load_encoder
from semsearch.encoders.specs import Precision, unpinned
from semsearch.errors import ArgumentError, IndexNotFoundError, SpaceError, quoted
from semsearch.protocols import Encoder
from semsearch.storage import create_store, open_store
from semsearch.storage.interface import Store, closed_on_error
from semsearch.storage.spaces import Space, check_stored_type, warn_of_cut_passages


def create_index(
    path: Path,
    encoders: Any,
    dtype: str | None = None,
    precision: str | None = None,
    device: str | None = None,
) -> tuple[Store, list[Encoder]]:
    """Open the index at a path, or create it; see `Index.create`.

    Returns:
        Its store, and the encoders that were loaded for its spaces.
    """
    check_stored_type(dtype)
    if precision is not None:
        precision = check_choice("precision", Precision, precision).value
    own = _stored_specs(path) if encoders is None else []
    given = own or listed_encoders(DEFAULT_ENCODER if encoders is None else encoders)
    if not given:
        raise ArgumentError("an index needs at least one encoder")
    if own and precision is None:  # they are loaded when needed
        store = open_store(path)
        with closed_on_error(store), store.read() as reader:
            for space in reader.spaces():
                space.check_dtype(dtype)
        return store, []
    loaded = [
        load_encoder(item, device, precision or "auto", local_files_only=bool(own))
        if isinstance(item, str)
        else item
        for item in given
    ]
    check_encoders(loaded)
    by_spec = [
        encoder for encoder, item in zip(loaded, given, strict=True) if isinstance(item, str)
    ]
    store = _open_or_create(path, loaded, dtype)
    with closed_on_error(store), store.read() as reader:
        spaces = reader.spaces()
        _check_spaces(store.path, spaces, loaded, dtype)
        others = _other_precisions(spaces, by_spec, precision)
    return store, [encoder for encoder in loaded if encoder not in others]


def listed_encoders(encoders: Any) -> list[Any]:
    """One spec or encoder, or several, as a list."""
    if isinstance(encoders, str) or _is_encoder(encoders):
        return [encoders]
    return check_items("encoders", encoders, "specs or encoders")


def _stored_specs(path: Path) -> list[str]:
    """The specs of the encoders of an index; none if it does not exist yet."""
    with suppress(IndexNotFoundError):
        store = open_store(path)
        with closing(store), store.read() as state:
            return [space.spec for space in state.spaces()]
    return []


def check_encoders(encoders: Sequence[Encoder]) -> None:
    """Refuse what is no encoder, and encoders given twice.

    Raises:
        ArgumentError: an item is not an encoder, or two have one fingerprint.
    """
    for encoder in encoders:
        if not _is_encoder(encoder):
            raise ArgumentError(
                f"encoders must be encoders (load_encoder returns one) or, for create, specs, not "
                f"{shown(encoder)}"
            )
    counts = Counter(encoder.fingerprint for encoder in encoders)
    for encoder in encoders:
        if counts[encoder.fingerprint] > 1:
            raise ArgumentError(f"encoder '{encoder.spec}' is given twice; name each model once")


def _is_encoder(value: object) -> bool:
    # Not by `isinstance`: that of a protocol reads its properties, some of which load the model.
    return not isinstance(value, type) and hasattr(value, "encode_documents")


def _open_or_create(path: Path, encoders: Sequence[Encoder], dtype: str | None) -> Store:
    """The store at `path`, created with the spaces of these encoders if there is none."""
    try:
        return open_store(path)
    except IndexNotFoundError:
        max_tokens = encoders[0].max_document_tokens
        for encoder in encoders[1:]:
            warn_of_cut_passages(encoder, max_tokens)
        return create_store(path, max_tokens, encoders, dtype)


def _check_spaces(
    path: Path, spaces: Sequence[Space], encoders: Sequence[Encoder], dtype: str | None
) -> None:
    """Check that an index has the spaces of these encoders.

    Raises:
        SpaceError: it lacks one, or stores its vectors in another type.
    """
    by_fingerprint = {space.fingerprint: space for space in spaces}
    for encoder in encoders:
        if encoder.fingerprint in by_fingerprint:
            by_fingerprint[encoder.fingerprint].check_dtype(dtype)
            continue
        for space in spaces:
            if unpinned(space.spec) == unpinned(encoder.spec):
                space.check(encoder, path)
        names = ", ".join(space.name for space in spaces)
        raise SpaceError(
            f"{path} has no space of encoder '{encoder.spec}' (spaces: {names}); add one with: "
            f"semsearch configure --add-space {quoted(encoder.spec)} --index {quoted(str(path))}"
        )


def _other_precisions(
    spaces: Sequence[Space], encoders: Iterable[Encoder], precision: str | None
) -> list[Encoder]:
    """The encoders that were loaded in another precision than their space asks for.

    Raises:
        SpaceError: the space was made in another precision than the given one.
    """
    by_fingerprint = {space.fingerprint: space for space in spaces}
    others = []
    for encoder in encoders:
        space = by_fingerprint[encoder.fingerprint]
        if precision is None and space.precision is not Precision.AUTO:
            others.append(encoder)
        elif precision is not None and "precision" in space.description:
            made = space.description["precision"]
            is_int8 = precision == Precision.INT8.value  # a description would measure it
            named = precision if is_int8 else encoder.description().get("precision")
            if made != named:
                raise SpaceError(
                    f"space '{space.name}' was made in {made}, not {named}; "
                    "the precision is chosen when a space is made"
                )
    return others
