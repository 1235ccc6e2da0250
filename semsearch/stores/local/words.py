"""The words of passages for BM25: writing, removing, rebuilding."""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    insert,
    literal,
    select,
    update,
)

from semsearch.analysis import Analyser, Language
from semsearch.stores.local.schema import (
    chunks,
    chunks_fts,
    create_words,
    documents,
    get_language,
    put_setting,
)

CHUNKS_AT_ONCE = 4096

_SET_ANALYSED = (
    update(chunks).where(chunks.c.chunk_id == bindparam("id")).values(analysed=bindparam("right"))
)
_PASSAGES = (
    select(chunks.c.chunk_id, chunks.c.text, chunks.c.analysed)
    .where(chunks.c.chunk_id > bindparam("last"))
    .order_by(chunks.c.chunk_id)
    .limit(CHUNKS_AT_ONCE)
)


def analysed_text(text: str, analyser: Analyser) -> str | None:
    """The text that BM25 reads for a passage; None if it is the passage itself."""
    words = analyser.searchable(text)
    return None if words == text else words


def set_language(connection: Connection, language: Language) -> None:
    """Analyse all passages with the stemmer of a language."""
    put_setting(connection, "language", language._asdict())
    analyser = Analyser(language)
    last = 0
    while rows := connection.execute(_PASSAGES, {"last": last}).all():
        last = rows[-1].chunk_id
        analysed = [(row, analysed_text(row.text, analyser)) for row in rows]
        changed = [
            {"id": row.chunk_id, "right": words} for row, words in analysed if words != row.analysed
        ]
        if changed:
            connection.execute(_SET_ANALYSED, changed)
    connection.exec_driver_sql("DROP TABLE chunks_fts")
    create_words(connection, language)
    rebuild_words(connection)


def add_words(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Add the words of passages to BM25."""
    new = select(chunks.c.chunk_id, chunks.c.words).where(condition)
    connection.execute(insert(chunks_fts).from_select(["rowid", "words"], new))


def remove_words(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Remove the words of documents from BM25; FTS5 needs the old words to remove them."""
    old = (
        select(literal("delete"), chunks.c.chunk_id, chunks.c.words)
        .join(documents, documents.c.document_id == chunks.c.document_id)
        .where(condition)
    )
    connection.execute(insert(chunks_fts).from_select(["chunks_fts", "rowid", "words"], old))


def rebuild_words(connection: Connection) -> None:
    """Rebuild the BM25 index from the passages."""
    connection.exec_driver_sql("INSERT INTO chunks_fts(chunks_fts) VALUES ('rebuild')")


def renew_words(connection: Connection) -> None:
    """Make the tables of the BM25 index anew, without opening the old ones, which are damaged.

    The old pages remain in the file until VACUUM.

    Args:
        connection: in a transaction that FTS5 has not taken part in: it would refuse the rest.
    """
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql("DELETE FROM sqlite_schema WHERE tbl_name GLOB 'chunks_fts*'")
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")
    create_words(connection, get_language(connection))
    rebuild_words(connection)
