"""What the database derives from its own documents, built anew."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, true

from semsearch.index.schema import documents, fields

__all__ = ["metadata_names", "rebuild_fields", "rebuild_words"]

_field = func.json_each(documents.c.metadata).table_valued("key", name="field")
#: The names of the metadata fields that documents have.
metadata_names = select(_field.c.key).select_from(documents.join(_field, true())).distinct()


def rebuild_fields(connection: Connection) -> None:
    """Forget the names of fields that no document has any more."""
    connection.execute(delete(fields))
    connection.execute(insert(fields).from_select(["name"], metadata_names))


def rebuild_words(connection: Connection) -> None:
    """Build the BM25 index from the chunks."""
    connection.exec_driver_sql("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')")
