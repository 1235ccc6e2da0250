"""What the database derives from its own documents, built anew."""

from __future__ import annotations

from sqlalchemy import Connection

__all__ = ["rebuild_words"]


def rebuild_words(connection: Connection) -> None:
    """Build the BM25 index from the chunks."""
    connection.exec_driver_sql("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')")
