"""Migrations from older formats of the database, one step per version."""

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
    snapshots,
)
from semsearch.stores.local.texts import guess_rests
from semsearch.stores.local.words import rebuild_words, wrongly_analysed


def _to_format_2(connection: Connection) -> None:
    """Count the kinds of values of metadata fields; analyse passages for BM25."""
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
    """Store the characters between passages, if they can be guessed (the text hash confirms it)."""
    connection.exec_driver_sql("ALTER TABLE documents ADD COLUMN rest TEXT")
    guess_rests(connection)


def _to_format_4(connection: Connection) -> None:
    """Add indexes of metadata fields and of titles."""
    indexed_fields.create(connection)
    field_values.create(connection)
    for index in documents.indexes:
        index.create(connection)


def _to_format_5(connection: Connection) -> None:
    """Find words with special letters by their plain spelling, such as lodz for Łódź.

    Snapshots are written anew, as their records have other columns now.
    """
    snapshots.drop(connection)
    snapshots.create(connection)
    if wrongly_analysed(connection):
        rebuild_words(connection)


#: The step from format n to n + 1, by n.
STEPS: dict[int, Callable[[Connection], None]] = {
    1: _to_format_2,
    2: _to_format_3,
    3: _to_format_4,
    4: _to_format_5,
}


def migrate(connection: Connection) -> None:
    """Migrate a database to the current format, in the transaction of the connection.

    Raises:
        IndexFormatError: the format is unknown.
    """
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    for number in range(version, FORMAT_VERSION):
        if number not in STEPS:
            raise IndexVersionError(f"no semsearch ever wrote index format {number}")
        STEPS[number](connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {number + 1}")
