"""Search for exactly k passages, however many candidates are filtered out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from semsearch.protocols import Matrix
from semsearch.stores.milvus.collections import both, listed
from semsearch.stores.milvus.connection import MAX_FOUND, Connection, Row
from semsearch.stores.protocol import Candidate

#: How far apart the scores of equal unit vectors can be, by the order in which float32 adds up; of
#: words, which part of the best score.
ROUNDING = 2e-6
#: How many queries are sent at once, and for how many rows: milvus-lite returns 1,300 a second
#: on a busy machine, and a request has to be done within the time limit.
QUERIES_AT_ONCE, ROWS_AT_ONCE = 256, 8192
#: How many candidates HNSW keeps, at least.
MIN_CANDIDATES = 128

_FIELDS = ("row", "chunk", "document", "version")


class _Found(NamedTuple):
    """A row that Milvus has found."""

    score: float
    chunk: int
    document: int
    row: int


class VectorSearch:
    """Searches one space, or words, under one condition.

    Args:
        connection: to Milvus.
        collection: of the space.
        condition: an expression; empty for none.
        since: see `Connection.query`.
        owners: gives the rows of documents by their numbers.
        metric: how vectors are compared.
        is_exact: whether Milvus compares all vectors.
    """

    def __init__(
        self,
        connection: Connection,
        collection: str,
        condition: str,
        since: int,
        owners: Callable[[Sequence[int]], dict[int, Row]],
        metric: str,
        is_exact: bool,
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._condition = condition
        self._since = since
        self._owners = owners
        self._metric = metric
        self._is_exact = is_exact

    def best(
        self, queries: Matrix | Sequence[Mapping[int, float]], k: int, per_document: int
    ) -> list[list[Candidate]]:
        """The `k` best passages of each query; see `StoreState.search_vectors`.

        Args:
            queries: unit vectors, or sparse vectors of words.
            k: how many.
            per_document: how many passages of a document may be among them.
        """
        limit = min(2 * k + 8, MAX_FOUND)
        found: list[list[Candidate]] = []
        step = min(QUERIES_AT_ONCE, max(1, ROWS_AT_ONCE // limit))
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            answers = self._search(some, limit, "")
            found += [
                self._first(query, answer, limit, k, per_document)
                for query, answer in zip(some, self._live(answers), strict=True)
            ]
        return found

    def _first(
        self,
        query: Any,
        answer: tuple[list[_Found], list[_Found]],
        limit: int,
        k: int,
        per_document: int,
    ) -> list[Candidate]:
        """The best of one query, of what was found and, while it may be too little, of the rest."""
        live: list[_Found] = []
        seen: list[_Found] = []
        while True:
            returned, alive = answer
            seen += returned
            live = self._settled(query, live + alive)
            chosen = _best(live, per_document)
            least = min((one.score for one in returned), default=-math.inf)
            least += _rounding(query, live)
            is_last = not returned or (self._is_exact and len(returned) < limit)
            if is_last and len(chosen) < k and self._condition and not self._is_exact:
                rest = self._without(seen, live, least, per_document)
                live = self._settled(query, live + self._missed(query, rest))
                chosen = _best(live, per_document)
            if is_last or (len(chosen) >= k and chosen[k - 1].score > least):
                return [Candidate(one.document, one.chunk, one.score) for one in chosen[:k]]
            limit = min(4 * limit, MAX_FOUND)
            rest = self._without(seen, live, least, per_document)
            [answer] = self._live(self._search([query], limit, rest))

    def _missed(self, query: Any, rest: str) -> list[_Found]:
        """Rows that meet the condition but that the graph's links among such rows do not reach."""
        rows = self._connection.query(
            self._collection, both(self._condition, rest), _FIELDS, self._since
        )
        self._versions = {row["row"]: row["version"] for row in rows}
        found = [_Found(0.0, row["chunk"], row["document"], row["row"]) for row in rows]
        [(_, alive)] = self._live([found])
        scores = self._scores(query, [one.row for one in alive])
        return [one._replace(score=scores[one.row]) for one in alive if one.row in scores]

    def _search(self, queries: Any, limit: int, rest: str) -> list[list[_Found]]:
        parameters = {} if self._is_exact else {"ef": max(MIN_CANDIDATES, 2 * limit)}
        answers = self._connection.search(
            self._collection,
            queries,
            limit,
            both(self._condition, rest),
            _FIELDS,
            self._since,
            self._metric,
            parameters,
        )
        self._versions = {row["row"]: row["version"] for answer in answers for _, row in answer}
        return [
            [_Found(score, row["chunk"], row["document"], row["row"]) for score, row in answer]
            for answer in answers
        ]

    def _live(self, answers: list[list[_Found]]) -> list[tuple[list[_Found], list[_Found]]]:
        """Each answer, and the part of it that belongs to its documents' present versions."""
        owners = self._owners([one.document for answer in answers for one in answer])
        versions = {number: row["version"] for number, row in owners.items()}
        return [
            (
                answer,
                [one for one in answer if versions.get(one.document) == self._versions[one.row]],
            )
            for answer in answers
        ]

    def _settled(self, query: Any, found: list[_Found]) -> list[_Found]:
        """In order, best first; scores that rounding cannot tell apart are computed once more."""
        found = sorted(found, key=lambda one: (-one.score, one.chunk))
        scores = numpy.array([one.score for one in found], numpy.float64)
        close = numpy.flatnonzero(scores[:-1] - scores[1:] <= _rounding(query, found))
        places = numpy.union1d(close, close + 1).tolist()
        if not places:
            return found
        settled = self._scores(query, [found[place].row for place in places])
        renewed = [one._replace(score=settled.get(one.row, one.score)) for one in found]
        return sorted(renewed, key=lambda one: (-one.score, one.chunk))

    def _scores(self, query: Any, rows: Sequence[int]) -> dict[int, float]:
        return {
            int(row["row"]): self._score(query, row["vector"])
            for one_of in listed("row", rows)
            for row in self._connection.query(
                self._collection, one_of, ["row", "vector"], self._since
            )
        }

    def _score(self, query: Any, vector: Any) -> float:
        if isinstance(query, Mapping):
            return float(sum(weight * vector.get(term, 0.0) for term, weight in query.items()))
        exact = numpy.array(vector, numpy.float64)
        if self._metric == "COSINE":
            exact /= numpy.linalg.norm(exact)
        return round(float(exact @ numpy.array(query, numpy.float64)), 9)

    def _without(
        self, seen: list[_Found], live: list[_Found], least: float, per_document: int
    ) -> str:
        """A condition for what has not been seen and may still be a candidate."""
        above = Counter(one.document for one in live if one.score > least)
        done = sorted(number for number, count in above.items() if count >= per_document)
        rows = sorted({one.row for one in seen if one.document not in set(done)})
        conditions = [
            f"not ({one_of})"
            for field, values in (("document", done), ("row", rows))
            for one_of in listed(field, values)
        ]
        return both(*conditions)


def _rounding(query: Any, found: Sequence[_Found]) -> float:
    if isinstance(query, Mapping):
        return ROUNDING * max((one.score for one in found), default=0.0)
    return ROUNDING


def _best(found: list[_Found], per_document: int) -> list[_Found]:
    """The first ones of each document, of rows in order."""
    taken: Counter[int] = Counter()
    kept = []
    for one in found:
        if taken[one.document] < per_document:
            taken[one.document] += 1
            kept.append(one)
    return kept
