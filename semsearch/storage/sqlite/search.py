"""Search in one committed state: by vectors, and by words with BM25."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    Text,
    bindparam,
    literal_column,
    select,
    table,
)

from semsearch.arguments import MAX_WHOLE_NUMBER
from semsearch.protocols import Matrix
from semsearch.storage.interface import NO_RESTRICTION, Restriction, ScoredPassage
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.restrictions import RestrictionMemory, Restrictions
from semsearch.storage.sqlite.schema import documents, passages, values_later
from semsearch.vector_indexes import Ids

if TYPE_CHECKING:
    from semsearch.storage.sqlite.vector_view import VectorView

#: Below these shares, the documents that match a filter are listed before the search; the second
#: share applies if indexes alone find them, so that no document is read.
LISTED_SHARE, LISTED_SHARE_BY_INDEX = 0.02, 0.2
#: If matching documents are rarer among the nearest than overall, they are listed once the expected
#: number of matches exceeds the wanted number by this factor.
MAX_LEFT_OUT = 50

#: By how many standard deviations the expected number of matches exceeds the wanted one: if matches
#: are spread at random, fewer than one query in a hundred has to be searched again.
SPARE_DEVIATIONS = 3

#: SQLite accepts expressions up to 1,000 operators deep; further phrases are words only.
MAX_PHRASES = 100

#: Marks matched words.
MARK = "\x02\x1f\x03"

# Built once, because SQLAlchemy takes longer to build a statement than to run it.
_OWNERS = select(passages.c.passage_id, passages.c.document_id).where(
    passages.c.passage_id.in_(values_later("passage_ids"))
)

_words = table("passages_fts")
_PASSAGE_ID = literal_column("rowid", Integer).label("passage_id")


def _matches(parameter: str) -> ColumnElement[bool]:
    return literal_column("passages_fts").bool_op("MATCH")(bindparam(parameter, type_=Text))


_MATCHED = (
    select(
        _PASSAGE_ID,
        literal_column(f"highlight(passages_fts, 0, '{MARK}', '{MARK}')", Text).label("marked"),
    )
    .select_from(_words)
    .where(_matches("match"), literal_column("rowid", Integer).in_(values_later("passage_ids")))
)
_MARKED = re.compile(f"{MARK}(.*?){MARK}", re.DOTALL)


@cache
def _by_words(phrases: int = 0, *, among: bool = False) -> Select[int, float]:
    """The best passages by their words and by this number of phrases, `among` some passages or all.

    Cached, because SQLAlchemy takes longer to build a statement than to run it.
    """
    score: ColumnElement[float] = -literal_column("rank", Float)
    for number in range(phrases):
        held = select(_PASSAGE_ID).select_from(_words).where(_matches(f"phrase{number}"))
        score += bindparam("best") * literal_column("rowid").in_(held)
    # With this order SQLite keeps the `n` best; ordered by rank alone, FTS5 would sort all rows.
    ranked = score.label("score")
    query = select(_PASSAGE_ID, ranked).select_from(_words).where(_matches("match"))
    if among:
        # The sign keeps SQLite from searching the words once for each passage.
        query = query.where(literal_column("+rowid", Integer).in_(values_later("passage_ids")))
    return query.order_by(ranked.desc(), _PASSAGE_ID).limit(bindparam("n"))


#: Returns the vectors of a space at a revision.
ViewOf: TypeAlias = "Callable[[Connection, Space, tuple[str, int]], VectorView]"


class StateSearch:
    """The search methods of `semsearch.storage.interface.Reader`.

    Args:
        connection: in a transaction.
        view_of: returns the vectors of a space.
        memory: a cache about restrictions, shared with later states.
    """

    def __init__(self, connection: Connection, view_of: ViewOf, memory: RestrictionMemory) -> None:
        self.connection = connection
        self._view_of = view_of
        self._memory = memory

    def prepare(self, space: Space) -> None:
        """Load the vectors of a space."""
        self._view(space)

    def search_vectors(
        self,
        space: Space,
        queries: Matrix,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query (fewer only when fewer match), best first.

        If many documents match the restriction, more candidates are searched and others dropped;
        if few do, their passages are listed first, and only these are searched.
        """
        view = self._view(space)
        share = self._listed_share(restriction, self._least_share(restriction))
        is_listed = not share
        allowed = self._restrictions.passages(restriction) if is_listed else None
        clause = None if is_listed else self._restrictions.clause(restriction)
        wanted = view.reach(k)
        found: list[list[ScoredPassage]] = [[] for _ in queries]
        open_queries = numpy.arange(len(queries))
        most = wanted * MAX_LEFT_OUT
        reach = len(view) if allowed is None else len(allowed)
        n = min(wanted if is_listed else _depth(wanted, share), reach)
        while len(open_queries) and n:
            scores, ids = view.search(queries[open_queries], n, allowed)
            owners = self._owners(numpy.unique(ids), clause)
            for query, row_scores, row_ids in zip(open_queries, scores, ids, strict=True):
                scored = zip(row_scores[:n].tolist(), row_ids[:n].tolist(), strict=True)
                found[query] = _best(scored, owners, k, per_document)
            if n == reach:
                break
            # Further passages of a document, deleted ones, or ones that do not match the condition
            # took up places: search further.
            open_queries = numpy.array([query for query in open_queries if len(found[query]) < k])
            n = min(4 * n, reach)
            if len(open_queries) and not is_listed and clause is not None and n * share > most:
                is_listed, clause = True, None
                allowed = self._restrictions.passages(restriction)
                reach = len(allowed)
                n = min(wanted, reach)
        return found

    def describe_search(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        plan = self._view(space).plan
        if restriction == NO_RESTRICTION:
            return plan
        share = self._listed_share(restriction, self._least_share(restriction))
        if share:
            return f"{plan}; about {share:.0%} of the documents match the filter, checked after"
        from semsearch.texts import quantity

        count = len(self._restrictions.passages(restriction))
        return f"{plan}; restricted to {quantity(count, 'passage')}, searched alone"

    def search_bm25(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[ScoredPassage]:
        """The `k` best passages by BM25 over their words, best first.

        The score is SQLite's `bm25` with the opposite sign, so that higher is better (k1 = 1.2,
        b = 0.75; Robertson & Zaragoza 2009). A phrase is one more word, and each phrase in a
        passage adds the best score of any passage, so that passages with more phrases come first.
        """
        analyser = self._restrictions.analyser
        match = analyser.match_expression(text, phrases)
        if match is None:
            return []
        terms = [term for term in map(analyser.phrase_term, phrases) if term][:MAX_PHRASES]
        parameters: dict[str, Any] = {"match": match}
        if terms:
            best = self.connection.execute(_by_words(), parameters | {"n": 1}).first()
            parameters |= {"best": best.score if best else 0}
            parameters |= {f"phrase{number}": term for number, term in enumerate(terms)}
        share = self._listed_share(restriction, LISTED_SHARE)
        query = _by_words(len(terms), among=not share)
        if share:
            clause = self._restrictions.clause(restriction)
        else:
            clause, share = None, 1
            parameters["passage_ids"] = self._restrictions.passages(restriction).tolist()
        found: list[ScoredPassage] = []
        n = min(math.ceil((2 * k + 8) / share), MAX_WHOLE_NUMBER)
        while True:
            rows = self.connection.execute(query, parameters | {"n": n}).all()
            owners = self._owners(
                numpy.array([row.passage_id for row in rows], numpy.int64), clause
            )
            scored = ((row.score, row.passage_id) for row in rows)
            found = _best(scored, owners, k, per_document)
            if len(found) == k or len(rows) < n:
                return found
            n = min(4 * n, MAX_WHOLE_NUMBER)

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of passages, as BM25 reads them, that occur in a text."""
        match = self._restrictions.analyser.match_expression(text)
        if match is None:
            return {}
        rows = self.connection.execute(_MATCHED, {"match": match, "passage_ids": list(passage_ids)})
        return {
            row.passage_id: list(dict.fromkeys(_MARKED.findall(row.marked.lower()))) for row in rows
        }

    def _view(self, space: Space) -> VectorView:
        return self._view_of(self.connection, space, self._restrictions.revision)

    @cached_property
    def _restrictions(self) -> Restrictions:
        return Restrictions(self.connection, self._memory)

    def _listed_share(self, restriction: Restriction, least: float) -> float:
        """The share of documents that match a restriction; 0, to list them, below `least`."""
        share = self._restrictions.share(restriction)
        return share if share >= least else 0

    def _least_share(self, restriction: Restriction) -> float:
        """The share below which the matching documents are listed."""
        is_indexed = self._restrictions.is_indexed(restriction)
        return LISTED_SHARE_BY_INDEX if is_indexed else LISTED_SHARE

    def _owners(self, passage_ids: Ids, clause: ColumnElement[bool] | None) -> dict[int, int]:
        """The document of each passage that still exists, if it matches a condition."""
        query = _OWNERS if clause is None else _OWNERS.join(documents).where(clause)
        rows = self.connection.execute(query, {"passage_ids": passage_ids.tolist()})
        return {passage_id: document_id for passage_id, document_id in rows}  # noqa: C416 - Rows


def _depth(wanted: int, share: float) -> int:
    """How many nearest passages to search so that `wanted` of them match, if this share does."""
    return math.ceil((wanted + SPARE_DEVIATIONS * math.sqrt(wanted * (1 - share))) / share)


def _best(
    scored: Iterable[tuple[float, int]], owners: dict[int, int], k: int, per_document: int
) -> list[ScoredPassage]:
    """The `k` best passages, best first, at most `per_document` of each document.

    Args:
        scored: best first.
        owners: the documents of passages; those of other passages do not count.
        k: the number of passages.
        per_document: the number of passages of a document.
    """
    found: list[ScoredPassage] = []
    taken: dict[int, int] = {}
    for score, passage_id in scored:
        document_id = owners.get(passage_id)
        if document_id is None:
            continue
        count = taken.get(document_id, 0)
        if count < per_document:
            taken[document_id] = count + 1
            found.append(ScoredPassage(document_id, passage_id, score))
            if len(found) == k:
                break
    return found
