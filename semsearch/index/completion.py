"""Vectors that are missing: of a space that was added later, or of rows that were damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import Connection, Row, exists, insert, select, update

from semsearch.index.schema import chunks, spaces, vectors
from semsearch.index.spaces import Space
from semsearch.protocols import Encoder

__all__ = ["complete_space"]

BATCH_CHUNKS = 256


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
    """
    encoded = 0
    for batch in _batches_without_vector(connection, space):
        matrix = encoder.encode_documents([chunk.text for chunk in batch])
        rows = [
            {"chunk_id": chunk.chunk_id, "space_id": space.id, "vector": vector}
            for chunk, vector in zip(batch, space.to_bytes(matrix), strict=True)
        ]
        with connection.begin():
            connection.execute(insert(vectors), rows)
        encoded += len(batch)
        on_batch(encoded)
    with connection.begin():
        connection.execute(update(spaces).where(spaces.c.space_id == space.id).values(complete=1))
    return encoded


def _batches_without_vector(
    connection: Connection, space: Space
) -> Iterator[Sequence[Row[int, str]]]:
    last = 0
    has_vector = exists().where(
        vectors.c.chunk_id == chunks.c.chunk_id, vectors.c.space_id == space.id
    )
    while True:
        with connection.begin():
            batch = connection.execute(
                select(chunks.c.chunk_id, chunks.c.text)
                .where(chunks.c.chunk_id > last, ~has_vector)
                .order_by(chunks.c.chunk_id)
                .limit(BATCH_CHUNKS)
            ).all()
        if not batch:
            return
        last = batch[-1].chunk_id
        yield batch
