"""The documents that the present run has read, in a temporary table of the writer's connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    select,
)

from semsearch.stores.local.schema import insert_rows, values
from semsearch.stores.protocol import Seen

_SEEN = Table(
    "seen",
    MetaData(),
    Column("external_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("repeats", Integer, nullable=False),
    prefixes=["TEMPORARY"],
)


def begin(connection: Connection) -> None:
    """Begin a run: no document of its corpus has been read."""
    _SEEN.create(connection, checkfirst=True)
    connection.execute(delete(_SEEN))


def seen(connection: Connection, ids: Sequence[str]) -> dict[str, Seen]:
    """The ones of these ids that have been read."""
    rows = connection.execute(select(_SEEN).where(_SEEN.c.external_id.in_(values(ids))))
    return {row.external_id: Seen(row.source, row.repeats) for row in rows}


def was_seen(external_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the document with an id has been read, in SQL."""
    return external_id.in_(select(_SEEN.c.external_id))


def mark(connection: Connection, documents: Mapping[str, Seen]) -> None:
    """Remember documents; of those that were read before, how often they were repeated."""
    rows = [(name, *one) for name, one in documents.items()]
    insert_rows(connection, _SEEN, _SEEN.columns.keys(), rows, key="external_id")
