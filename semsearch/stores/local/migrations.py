"""From older formats of the database to this one, a step at a time."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from semsearch.errors import IndexVersionError
from semsearch.stores.local.fields import rebuild_kinds
from semsearch.stores.local.schema import (
    FORMAT_VERSION,
    create_words,
    documents,
    field_values,
    fields,
    indexed_fields,
)
from semsearch.stores.local.texts import guess_rests
from semsearch.stores.local.words import rebuild_words, wrongly_analysed


def _to_format_2(connection: Connection) -> None:
    """Know what the metadata fields hold, not only their names; analyse passages for BM25."""
    connection.exec_driver_sql("DROP TABLE fields")
    fields.create(connection)
    rebuild_kinds(connection)
    connection.exec_driver_sql("ALTER TABLE chunks ADD COLUMN analysed TEXT")
    connection.exec_driver_sql(
        "ALTER TABLE chunks ADD COLUMN words TEXT GENERATED ALWAYS AS (coalesce(analysed, text))"
    )
    connection.exec_driver_sql("DROP TABLE chunks_fts")
    create_words(connection)
    rebuild_words(connection)


def _to_format_3(connection: Connection) -> None:
    """Know the characters between passages, where they can be guessed: the hash tells."""
    connection.exec_driver_sql("ALTER TABLE documents ADD COLUMN rest TEXT")
    guess_rests(connection)


def _to_format_4(connection: Connection) -> None:
    """Be able to index metadata fields, and find documents by title."""
    indexed_fields.create(connection)
    field_values.create(connection)
    for index in documents.indexes:
        index.create(connection)


def _to_format_5(connection: Connection) -> None:
    """Find words by the plainer ones of their letters, such as lodz for Łódź."""
    if wrongly_analysed(connection):
        rebuild_words(connection)


#: What makes format n + 1 of format n.
STEPS: dict[int, Callable[[Connection], None]] = {
    1: _to_format_2,
    2: _to_format_3,
    3: _to_format_4,
    4: _to_format_5,
}


def migrate(connection: Connection) -> None:
    """Bring a database to this format, within the transaction of the connection.

    Raises:
        IndexFormatError: its format was never one.
    """
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    for number in range(version, FORMAT_VERSION):
        if number not in STEPS:
            raise IndexVersionError(f"no semsearch ever wrote index format {number}")
        STEPS[number](connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {number + 1}")
