"""Rebuild what an index derives from its documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection, delete, select, update

from semsearch.index.completion import complete_space
from semsearch.index.derived import rebuild_words
from semsearch.index.folding import fold, remove_leftovers
from semsearch.index.kinds import rebuild_kinds
from semsearch.index.removal import next_revision
from semsearch.index.schema import chunks, documents, snapshots, spaces, vectors
from semsearch.index.spaces import Space
from semsearch.index.values import values
from semsearch.index.verification import bad_vectors
from semsearch.protocols import Encoder

__all__ = ["repair"]


def repair(
    connection: Connection, directory: Path, encoders: Iterable[tuple[Space, Encoder]]
) -> None:
    """Rebuild all derived data.

    SQLite's own indexes, the words for BM25, the list of fields and the snapshots are built anew;
    rows that belong to nothing go; vectors that are missing or damaged are encoded again.
    """
    with connection.begin():
        connection.exec_driver_sql("REINDEX")
        owners = select(documents.c.document_id)
        connection.execute(delete(chunks).where(chunks.c.document_id.not_in(owners)))
        chunk_ids, space_ids = select(chunks.c.chunk_id), select(spaces.c.space_id)
        connection.execute(
            delete(vectors).where(
                vectors.c.chunk_id.not_in(chunk_ids) | vectors.c.space_id.not_in(space_ids)
            )
        )
        rebuild_kinds(connection)
        rebuild_words(connection)
        connection.execute(delete(snapshots))
        next_revision(connection)
    for space, encoder in encoders:
        with connection.begin():
            bad = values(bad_vectors(connection, space))
            connection.execute(
                delete(vectors).where(vectors.c.space_id == space.id, vectors.c.chunk_id.in_(bad))
            )
            # Until it is complete again, readers refuse rather than miss passages.
            connection.execute(
                update(spaces).where(spaces.c.space_id == space.id).values(complete=0)
            )
            next_revision(connection)
        complete_space(connection, space, encoder)
        fold(connection, directory, space, thoroughly=True)
    remove_leftovers(connection, directory, keep_previous=False)
