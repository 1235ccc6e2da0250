"""Which documents a run has seen: a temporary table of its connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, delete, select

from semsearch.stores.local.schema import insert_rows, values
from semsearch.stores.protocol import Seen

seen = Table(
    "seen",
    MetaData(),
    Column("external_id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("repeats", Integer, nullable=False),
    prefixes=["TEMPORARY"],
)


def forget_seen(connection: Connection) -> None:
    """Begin a run: no document of its corpus has been seen."""
    seen.create(connection, checkfirst=True)
    connection.execute(delete(seen))


def seen_among(connection: Connection, ids: Sequence[str]) -> dict[str, Seen]:
    """The ones of these ids that have been seen."""
    rows = connection.execute(select(seen).where(seen.c.external_id.in_(values(ids))))
    return {row.external_id: Seen(row.source, row.repeats) for row in rows}


def mark_seen(connection: Connection, documents: Mapping[str, Seen]) -> None:
    """Remember documents; of those that were seen before, how often they were repeated."""
    rows = [(name, *one) for name, one in documents.items()]
    insert_rows(connection, seen, seen.columns.keys(), rows, key="external_id")
