"""Taking documents out of the database, with all that hangs on them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, insert, literal, select

from semsearch.index.kinds import subtract_kinds
from semsearch.index.schema import chunks, chunks_fts, documents
from semsearch.index.store import get_setting, put_setting

__all__ = ["next_revision", "remove_documents", "remove_words"]


def remove_documents(connection: Connection, condition: ColumnElement[bool]) -> int:
    """Remove the documents that meet a condition; chunks and vectors go with them.

    Returns:
        How many documents.
    """
    remove_words(connection, condition)
    subtract_kinds(connection, condition)
    removed = connection.execute(delete(documents).where(condition)).rowcount
    if removed:
        next_revision(connection)
    return removed


def remove_words(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Take the words of documents out of BM25, which has to be told what they were."""
    old = (
        select(literal("delete"), chunks.c.chunk_id, chunks.c.words)
        .join(documents, documents.c.document_id == chunks.c.document_id)
        .where(condition)
    )
    connection.execute(insert(chunks_fts).from_select(["chunks_fts", "rowid", "words"], old))


def next_revision(connection: Connection) -> None:
    """Tell readers that what they have loaded is of the past."""
    put_setting(connection, "revision", get_setting(connection, "revision", 0) + 1)
