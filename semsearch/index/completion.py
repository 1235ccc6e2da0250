"""Vectors that are missing: of a space that was added later, or of rows that were damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from semsearch.errors import NoVectorError
from semsearch.index.workers import Workers, begun_ahead
from semsearch.stores.protocol import StoreWriter
from semsearch.stores.space import Space
from semsearch.texts import quantity

BATCH_CHUNKS = 256
#: How many documents a message names.
SHOWN = 5


def complete_space(
    writer: StoreWriter,
    space: Space,
    workers: Workers,
    on_batch: Callable[[Counter[str]], None] = lambda encoded: None,
) -> int:
    """Encode the stored passages that lack a vector in a space, one transaction a batch.

    Args:
        writer: of the store.
        space: which space.
        workers: encode for it.
        on_batch: called after each commit with how many were encoded so far, by the node of a
            cluster.

    Returns:
        How many were encoded.

    Raises:
        NoVectorError: the encoder returns no vector for a passage; the others have theirs.
    """
    nodes = Counter[str]()
    refused = 0
    unusable: dict[str, None] = {}
    encoded = begun_ahead(
        _lacking(writer, space),
        lambda batch: workers.encode(space, [text for _, text, _ in batch]),
        lambda: workers.encoding_ahead,
    )
    for batch, (matrix, places, _, node) in encoded:
        writer.put_vectors(space, [batch[place][0] for place in places], matrix)
        usable = set(places)
        unusable |= {
            document_id: None
            for place, (_, _, document_id) in enumerate(batch)
            if place not in usable
        }
        refused += len(batch) - len(places)
        nodes[node] += len(places)
        on_batch(nodes.copy())
    if refused:
        raise NoVectorError(space.spec, [], _no_vectors(space, refused, list(unusable)))
    writer.mark_complete(space)
    return nodes.total()


def _lacking(writer: StoreWriter, space: Space) -> Iterator[list[tuple[int, str, str]]]:
    """Batches of passages without a vector: chunk id, text and document id."""
    last = 0
    while True:
        with writer.state() as state:
            batch = state.lacking(space, last, BATCH_CHUNKS)
        if not batch:
            return
        last = batch[-1][0]
        yield batch


def _no_vectors(space: Space, count: int, documents: list[str]) -> str:
    """Which documents keep a space from being complete, and what to do."""
    return (
        f"encoder '{space.spec}' returns no vector (but NaN or zero) for "
        f"{quantity(count, 'passage')}, of "
        f"{', '.join(documents[:SHOWN])}{' …' if len(documents) > SHOWN else ''}; delete them "
        f"with: semsearch delete {documents[0]}, then run: semsearch index --add-space {space.spec}"
    )
