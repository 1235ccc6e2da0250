"""Rebuild what the database derives from its documents."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from semsearch.stores.local.field_index import rebuild_values
from semsearch.stores.local.kinds import rebuild_kinds
from semsearch.stores.local.schema import chunks, documents, snapshots, spaces, vectors
from semsearch.stores.local.settings import next_revision
from semsearch.stores.local.texts import wrong_texts
from semsearch.stores.local.values import values
from semsearch.stores.local.verification import bad_vectors
from semsearch.stores.local.words import rebuild_words
from semsearch.stores.space import Space


def rebuild(connection: Connection) -> None:
    """Rebuild SQLite's own indexes, the words for BM25 and the list of fields.

    Rows that belong to nothing are removed, all snapshots forgotten, and wrong characters between
    passages, which the next run over the corpus knows.
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
        wrong = values(list(wrong_texts(connection)))
        connection.execute(
            update(documents).where(documents.c.document_id.in_(wrong)).values(rest=None)
        )
        rebuild_kinds(connection)
        rebuild_values(connection)
        rebuild_words(connection)
        connection.execute(delete(snapshots))
        next_revision(connection)


def discard_bad_vectors(connection: Connection, space: Space) -> None:
    """Remove the damaged vectors of a space, which is incomplete until they are there again."""
    with connection.begin():
        bad = values(bad_vectors(connection, space))
        connection.execute(
            delete(vectors).where(vectors.c.space_id == space.id, vectors.c.chunk_id.in_(bad))
        )
        # Until it is complete again, readers refuse rather than miss passages.
        connection.execute(update(spaces).where(spaces.c.space_id == space.id).values(complete=0))
        next_revision(connection)
