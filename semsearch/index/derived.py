"""What BM25 derives from the passages, built anew."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import BLOB, Connection, bindparam, cast, func, select, update

from semsearch.analysis import searchable
from semsearch.index.schema import chunks

__all__ = ["rebuild_words", "wrongly_analysed"]

CHUNKS_AT_ONCE = 4096

_SET_ANALYSED = (
    update(chunks).where(chunks.c.chunk_id == bindparam("id")).values(analysed=bindparam("right"))
)
#: All passages but those in ASCII, which stay as they are: they have a byte a character.
_PERHAPS_ANALYSED = (
    select(chunks.c.chunk_id, chunks.c.text, chunks.c.analysed)
    .where(chunks.c.chunk_id > bindparam("last"))
    .where(
        (func.length(chunks.c.text) != func.length(cast(chunks.c.text, BLOB)))
        | chunks.c.analysed.is_not(None)
    )
    .order_by(chunks.c.chunk_id)
    .limit(CHUNKS_AT_ONCE)
)


def rebuild_words(connection: Connection) -> None:
    """Build the BM25 index from the passages."""
    for chunk_id, words in _wrongly_analysed(connection):
        connection.execute(_SET_ANALYSED, {"id": chunk_id, "right": words})
    connection.exec_driver_sql("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')")


def wrongly_analysed(connection: Connection) -> int:
    """How many passages are not analysed for BM25 as they have to be."""
    return sum(1 for _ in _wrongly_analysed(connection))


def _wrongly_analysed(connection: Connection) -> Iterator[tuple[int, str | None]]:
    """The ids of these passages, and what has to stand in `analysed`."""
    last = 0
    while rows := connection.execute(_PERHAPS_ANALYSED, {"last": last}).all():
        last = rows[-1].chunk_id
        for row in rows:
            words = searchable(row.text)
            analysed = None if words == row.text else words
            if row.analysed != analysed:
                yield row.chunk_id, analysed
