"""The words of passages for BM25: writing, removing, rebuilding."""

from __future__ import annotations

from collections import Counter

import numpy
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    bindparam,
    func,
    insert,
    literal,
    select,
    update,
)

from semsearch.analysis import Analyser, Language
from semsearch.stores.local.schema import (
    FrequentWords,
    chunks,
    chunks_fts,
    create_words,
    documents,
    get_frequent_words,
    get_language,
    put_setting,
)
from semsearch.stores.local.snapshot import deleted_passages

CHUNKS_AT_ONCE = 4096

#: Words of more than this share of the passages are left out of queries that have others: SQLite
#: would score so many passages for hardly any difference.
FREQUENT_SHARE = 0.3
#: In fewer passages, no word is frequent; and shares are estimated from so many.
FREQUENT_FROM = 1000
#: Words are counted again when so many passages, as a share of all, were added or deleted.
RECOUNTED_SHARE = 0.1

_SET_ANALYSED = (
    update(chunks).where(chunks.c.chunk_id == bindparam("id")).values(analysed=bindparam("right"))
)
_PASSAGES = (
    select(chunks.c.chunk_id, chunks.c.text, chunks.c.analysed)
    .where(chunks.c.chunk_id > bindparam("last"))
    .order_by(chunks.c.chunk_id)
    .limit(CHUNKS_AT_ONCE)
)
#: The text of the next passage from each of some ids on, as ids of deleted passages are free.
_PLACES = func.json_each(bindparam("places", type_=JSON)).table_valued("value")
_AT_OR_AFTER = select(
    select(chunks.c.text)
    .where(chunks.c.chunk_id >= _PLACES.c.value)
    .order_by(chunks.c.chunk_id)
    .limit(1)
    .scalar_subquery()
).select_from(_PLACES)


def analysed_text(text: str, analyser: Analyser) -> str | None:
    """The text that BM25 reads for a passage; None if it is the passage itself."""
    words = analyser.searchable(text)
    return None if words == text else words


def analyse_again(connection: Connection, language: Language | None) -> None:
    """Analyse all passages with the stemmer of a language."""
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


def count_frequent_words(connection: Connection) -> None:
    """Record the frequent words, by a sample, if many passages were added or deleted since."""
    counted = select(func.count(), func.min(chunks.c.chunk_id), func.max(chunks.c.chunk_id))
    passages, first, last = connection.execute(counted.select_from(chunks)).one()
    changes = (last or 0) + deleted_passages(connection)
    if changes - get_frequent_words(connection).changes <= RECOUNTED_SHARE * passages:
        return
    frequent = []
    if passages >= FREQUENT_FROM:
        places = numpy.linspace(first, last, FREQUENT_FROM, dtype=numpy.int64)
        texts = connection.scalars(_AT_OR_AFTER, {"places": places.tolist()}).all()
        analyser = Analyser(get_language(connection))
        counts = Counter(word for text in texts for word in analyser.words(text))
        frequent = [word for word, count in counts.items() if count > FREQUENT_SHARE * len(texts)]
    put_setting(connection, "frequent_words", FrequentWords(changes, sorted(frequent)))


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
