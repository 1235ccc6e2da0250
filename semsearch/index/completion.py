"""Vectors that are missing: of a space that was added later, or of rows that were damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, Row, exists, insert, select, update

from semsearch.errors import EncoderError
from semsearch.index.removal import next_revision
from semsearch.index.schema import chunks, documents, spaces, vectors
from semsearch.index.spaces import Space
from semsearch.protocols import Encoder
from semsearch.vectors import encode_usable

__all__ = ["complete_space"]

BATCH_CHUNKS = 256
#: How many documents a message names.
SHOWN = 5


def complete_space(
    connection: Connection,
    space: Space,
    encoder: Encoder,
    on_batch: Callable[[int], None] = lambda encoded: None,
) -> int:
    """Encode the stored chunks that lack a vector in a space, one transaction a batch.

    Args:
        connection: its transactions begin with the write lock.
        space: which space.
        encoder: its encoder.
        on_batch: told after each commit how many were encoded so far.

    Returns:
        How many were encoded.

    Raises:
        EncoderError: the encoder returns no vector for a passage; the others have theirs.
    """
    encoded, refused = 0, 0
    for chunks_without in _batches_without_vector(connection, space):
        matrix, places = encode_usable(encoder, [chunk.text for chunk in chunks_without])
        refused += len(chunks_without) - len(places)
        batch = [chunks_without[place] for place in places]
        rows = [
            {"chunk_id": chunk.chunk_id, "space_id": space.id, "vector": vector}
            for chunk, vector in zip(batch, space.to_bytes(matrix), strict=True)
        ]
        if rows:
            with connection.begin():
                connection.execute(insert(vectors), rows)
        encoded += len(batch)
        on_batch(encoded)
    if refused:
        raise EncoderError(_no_vectors(connection, space, refused))
    with connection.begin():
        connection.execute(update(spaces).where(spaces.c.space_id == space.id).values(complete=1))
        next_revision(connection)
    return encoded


def _no_vectors(connection: Connection, space: Space, count: int) -> str:
    """Which documents keep a space from being complete, and what to do."""
    query = (
        select(documents.c.external_id)
        .distinct()
        .join(chunks, chunks.c.document_id == documents.c.document_id)
        .where(~_has_vector(space))
        .limit(SHOWN)
    )
    with connection.begin():
        names = list(connection.scalars(query))
    return (
        f"encoder '{space.spec}' returns no vector (but NaN or zero) for {count:,} passages, of "
        f"{', '.join(names)}{' …' if len(names) == SHOWN else ''}; delete them with: "
        f"semsearch delete {names[0]}, then run: semsearch index --add-space {space.spec}"
    )


def _has_vector(space: Space) -> ColumnElement[bool]:
    return exists().where(vectors.c.chunk_id == chunks.c.chunk_id, vectors.c.space_id == space.id)


def _batches_without_vector(
    connection: Connection, space: Space
) -> Iterator[Sequence[Row[int, str]]]:
    last = 0
    while True:
        with connection.begin():
            batch = connection.execute(
                select(chunks.c.chunk_id, chunks.c.text)
                .where(chunks.c.chunk_id > last, ~_has_vector(space))
                .order_by(chunks.c.chunk_id)
                .limit(BATCH_CHUNKS)
            ).all()
        if not batch:
            return
        last = batch[-1].chunk_id
        yield batch
