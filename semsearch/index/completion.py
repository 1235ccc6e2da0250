"""Vectors that are missing: of a space that was added later, or of rows that were damaged."""

from __future__ import annotations

from collections.abc import Callable

from semsearch.errors import EncoderError
from semsearch.protocols import Encoder
from semsearch.stores.protocol import StoreWriter
from semsearch.stores.space import Space
from semsearch.texts import quantity
from semsearch.vectors import encode_usable

BATCH_CHUNKS = 256
#: How many documents a message names.
SHOWN = 5


def complete_space(
    writer: StoreWriter,
    space: Space,
    encoder: Encoder,
    on_batch: Callable[[int], None] = lambda encoded: None,
) -> int:
    """Encode the stored passages that lack a vector in a space, one transaction a batch.

    Args:
        writer: of the store.
        space: which space.
        encoder: its encoder.
        on_batch: called after each commit with how many were encoded so far.

    Returns:
        How many were encoded.

    Raises:
        EncoderError: the encoder returns no vector for a passage; the others have theirs.
    """
    encoded, refused = 0, 0
    last = 0
    unusable: dict[str, None] = {}
    while True:
        with writer.state() as state:
            batch = state.lacking(space, last, BATCH_CHUNKS)
        if not batch:
            break
        last = batch[-1][0]
        matrix, places = encode_usable(encoder, [text for _, text, _ in batch])
        writer.put_vectors(space, [batch[place][0] for place in places], matrix)
        usable = set(places)
        unusable |= {
            document_id: None
            for place, (_, _, document_id) in enumerate(batch)
            if place not in usable
        }
        refused += len(batch) - len(places)
        encoded += len(places)
        on_batch(encoded)
    if refused:
        raise EncoderError(_no_vectors(space, refused, list(unusable)))
    writer.mark_complete(space)
    return encoded


def _no_vectors(space: Space, count: int, documents: list[str]) -> str:
    """Which documents keep a space from being complete, and what to do."""
    return (
        f"encoder '{space.spec}' returns no vector (but NaN or zero) for "
        f"{quantity(count, 'passage')}, of "
        f"{', '.join(documents[:SHOWN])}{' …' if len(documents) > SHOWN else ''}; delete them "
        f"with: semsearch delete {documents[0]}, then run: semsearch index --add-space {space.spec}"
    )
