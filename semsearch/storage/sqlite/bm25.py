"""BM25: searching the words of passages, and writing them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    Text,
    bindparam,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)

from semsearch.storage.interface import ScoredPassage
from semsearch.storage.sqlite.restrictions import Restricted, best_passages, owners
from semsearch.storage.sqlite.schema import (
    create_words,
    documents,
    get_setting,
    passages,
    passages_fts,
    put_setting,
    read_settings,
    values,
    values_later,
)
from semsearch.storage.sqlite.spaces import deleted_passages
from semsearch.storage.words import Analyser, Language

#: Words of more than this share of the passages are left out of queries that have others: SQLite
#: would score so many passages for hardly any difference.
FREQUENT_SHARE = 0.3
#: In fewer passages, no word is frequent; and shares are estimated from so many.
FREQUENT_FROM = 1000
#: The setting with the number of passages added or deleted before the last count, and the words.
FREQUENT_WORDS = "frequent_words"
#: Words are counted again when so many passages, as a share of all, were added or deleted.
RECOUNTED_SHARE = 0.1

#: Marks matched words.
MARK = "\x02\x1f\x03"
_MARKED = re.compile(f"{MARK}(.*?){MARK}", re.DOTALL)

_PASSAGE_ID = passages_fts.c.rowid.label("passage_id")


def _matches(parameter: str) -> ColumnElement[bool]:
    return passages_fts.c.passages_fts.bool_op("MATCH")(bindparam(parameter, type_=Text))


_MATCHED = select(
    _PASSAGE_ID,
    literal_column(f"highlight(passages_fts, 0, '{MARK}', '{MARK}')", Text).label("marked"),
).where(_matches("match"), passages_fts.c.rowid.in_(values_later("passage_ids")))


def stored_analyser(connection: Connection) -> Analyser:
    """Reads texts and queries as the index does."""
    _, frequent = get_setting(connection, FREQUENT_WORDS, [0, []])
    return Analyser(read_settings(connection).language, frequent)


def search_bm25(
    connection: Connection,
    analyser: Analyser,
    restricted: Restricted,
    text: str,
    k: int,
    phrases: Sequence[str],
) -> list[ScoredPassage]:
    """The `k` best passages by their words; see `semsearch.storage.interface.Reader`.

    The score is SQLite's `bm25` with the opposite sign, so that higher is better (k1 = 1.2,
    b = 0.75; Robertson & Zaragoza 2009). A phrase is one more word, and each phrase in a
    passage adds the best score of any passage, so that passages with more phrases come first.
    """
    match = analyser.match_expression(text, phrases)
    if match is None:
        return []
    terms = [term for term in map(analyser.phrase_term, phrases) if term]
    parameters: dict[str, Any] = {"match": match}
    if terms:
        best = connection.execute(_by_words(0, False), parameters | {"n": 1}).first()
        parameters |= {"best": best.score if best else 0}
        parameters |= {f"phrase{number}": term for number, term in enumerate(terms)}
    share, clause = restricted.share, restricted.clause
    if restricted.are_few:
        parameters["passage_ids"] = restricted.passages(connection).tolist()
        share, clause = 1, None
    query = _by_words(len(terms), restricted.are_few)
    n = math.ceil((2 * k + 8) / share)
    while True:
        rows = connection.execute(query, parameters | {"n": n}).all()
        ids = numpy.array([row.passage_id for row in rows], numpy.int64)
        scored = ((row.score, row.passage_id) for row in rows)
        documents = owners(connection, ids, clause)
        found = best_passages(scored, documents, k, restricted.per_document)
        if len(found) == k or len(rows) < n:
            return found
        n *= 4


@cache
def _by_words(phrases: int, among: bool) -> Select[int, float]:
    """The best passages by their words and by this number of phrases, `among` some passages or all.

    Cached, because SQLAlchemy takes longer to build a statement than to run it.
    """
    score: ColumnElement[float] = -literal_column("rank", Float)
    for number in range(phrases):
        held = select(passages_fts.c.rowid).where(_matches(f"phrase{number}")).correlate(None)
        score += bindparam("best") * passages_fts.c.rowid.in_(held)
    # With this order SQLite keeps the `n` best; ordered by rank alone, FTS5 would sort all rows.
    ranked = score.label("score")
    query = select(_PASSAGE_ID, ranked).where(_matches("match"))
    if among:
        # The sign keeps SQLite from searching the words once for each passage.
        query = query.where(literal_column("+rowid", Integer).in_(values_later("passage_ids")))
    return query.order_by(ranked.desc(), _PASSAGE_ID).limit(bindparam("n"))


def matched_words(
    connection: Connection, analyser: Analyser, text: str, passage_ids: Sequence[int]
) -> dict[int, list[str]]:
    """The words of passages that occur in a text; see `semsearch.storage.interface.Reader`."""
    match = analyser.match_expression(text)
    if match is None:
        return {}
    rows = connection.execute(_MATCHED, {"match": match, "passage_ids": list(passage_ids)})
    return {
        row.passage_id: list(dict.fromkeys(_MARKED.findall(row.marked.lower()))) for row in rows
    }


def analysed_text(text: str, analyser: Analyser) -> str | None:
    """The text that BM25 reads for a passage; None if it is the passage itself."""
    words = analyser.searchable(text)
    return None if words == text else words


def analyse_again(connection: Connection, language: Language | None) -> None:
    """Analyse all passages with the stemmer of a language."""
    raw: Any = connection.connection.driver_connection
    raw.create_function("analysed_text", 1, partial(analysed_text, analyser=Analyser(language)))
    connection.execute(update(passages).values(analysed=func.analysed_text(passages.c.text)))
    connection.exec_driver_sql("DROP TABLE passages_fts")
    create_words(connection, language)
    rebuild_words(connection)


def count_frequent_words(connection: Connection) -> None:
    """Record the frequent words, by a sample, if many passages were added or deleted since."""
    number = passages.c.passage_id
    counted = select(func.count(), func.min(number), func.max(number)).select_from(passages)
    total, first, last = connection.execute(counted).one()
    changes = (last or 0) + deleted_passages(connection)
    counted_at, _ = get_setting(connection, FREQUENT_WORDS, [0, []])
    if changes - counted_at <= RECOUNTED_SHARE * total:
        return
    frequent = []
    if total >= FREQUENT_FROM:
        # Among the ids are some of deleted passages.
        count = FREQUENT_FROM * (last - first + 1) // total
        ids = values(numpy.linspace(first, last, count, dtype=numpy.int64).tolist())
        texts = connection.scalars(select(passages.c.text).where(number.in_(ids)))
        analyser = Analyser(read_settings(connection).language)
        sample = [analyser.words(text) for text in texts]
        counts = Counter(word for words in sample for word in words)
        frequent = [word for word, count in counts.items() if count > FREQUENT_SHARE * len(sample)]
    put_setting(connection, FREQUENT_WORDS, [changes, sorted(frequent)])


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
