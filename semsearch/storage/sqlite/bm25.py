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
from semsearch.storage.sqlite.schema import (
    FrequentWords,
    create_words,
    documents,
    get_frequent_words,
    get_language,
    passages,
    passages_fts,
    put_setting,
)
from semsearch.storage.sqlite.snapshot import deleted_passages

PASSAGES_AT_ONCE = 4096

#: Words of more than this share of the passages are left out of queries that have others: SQLite
#: would score so many passages for hardly any difference.
FREQUENT_SHARE = 0.3
#: In fewer passages, no word is frequent; and shares are estimated from so many.
FREQUENT_FROM = 1000
#: Words are counted again when so many passages, as a share of all, were added or deleted.
RECOUNTED_SHARE = 0.1

_SET_ANALYSED = (
    update(passages)
    .where(passages.c.passage_id == bindparam("id"))
    .values(analysed=bindparam("right"))
)
_PASSAGES = (
    select(passages.c.passage_id, passages.c.text, passages.c.analysed)
    .where(passages.c.passage_id > bindparam("last"))
    .order_by(passages.c.passage_id)
    .limit(PASSAGES_AT_ONCE)
)
#: The text of the next passage from each of some ids on, as ids of deleted passages are free.
_PLACES = func.json_each(bindparam("places", type_=JSON)).table_valued("value")
_AT_OR_AFTER = select(
    select(passages.c.text)
    .where(passages.c.passage_id >= _PLACES.c.value)
    .order_by(passages.c.passage_id)
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
        last = rows[-1].passage_id
        analysed = [(row, analysed_text(row.text, analyser)) for row in rows]
        changed = [
            {"id": row.passage_id, "right": words}
            for row, words in analysed
            if words != row.analysed
        ]
        if changed:
            connection.execute(_SET_ANALYSED, changed)
    connection.exec_driver_sql("DROP TABLE passages_fts")
    create_words(connection, language)
    rebuild_words(connection)


def count_frequent_words(connection: Connection) -> None:
    """Record the frequent words, by a sample, if many passages were added or deleted since."""
    counted = select(func.count(), func.min(passages.c.passage_id), func.max(passages.c.passage_id))
    total, first, last = connection.execute(counted.select_from(passages)).one()
    changes = (last or 0) + deleted_passages(connection)
    if changes - get_frequent_words(connection).changes <= RECOUNTED_SHARE * total:
        return
    frequent = []
    if total >= FREQUENT_FROM:
        places = numpy.linspace(first, last, FREQUENT_FROM, dtype=numpy.int64)
        texts = connection.scalars(_AT_OR_AFTER, {"places": places.tolist()}).all()
        analyser = Analyser(get_language(connection))
        counts = Counter(word for text in texts for word in analyser.words(text))
        frequent = [word for word, count in counts.items() if count > FREQUENT_SHARE * len(texts)]
    put_setting(connection, "frequent_words", FrequentWords(changes, sorted(frequent)))


def add_words(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Add the words of passages to BM25."""
    new = select(passages.c.passage_id, passages.c.words).where(condition)
    connection.execute(insert(passages_fts).from_select(["rowid", "words"], new))


def remove_words(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Remove the words of documents from BM25; FTS5 needs the old words to remove them."""
    old = (
        select(literal("delete"), passages.c.passage_id, passages.c.words)
        .join(documents, documents.c.document_id == passages.c.document_id)
        .where(condition)
    )
    connection.execute(insert(passages_fts).from_select(["passages_fts", "rowid", "words"], old))


def rebuild_words(connection: Connection) -> None:
    """Rebuild the BM25 index from the passages."""
    connection.exec_driver_sql("INSERT INTO passages_fts(passages_fts) VALUES ('rebuild')")


def renew_words(connection: Connection) -> None:
    """Make the tables of the BM25 index anew, without opening the old ones, which are damaged.

    The old pages remain in the file until VACUUM.

    Args:
        connection: in a transaction that FTS5 has not taken part in: it would refuse the rest.
    """
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql("DELETE FROM sqlite_schema WHERE tbl_name GLOB 'passages_fts*'")
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")
    create_words(connection, get_language(connection))
    rebuild_words(connection)
