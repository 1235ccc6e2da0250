"""Search for exactly k passages, with at most some of each document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from semsearch.records import SCORE_DECIMALS
from semsearch.storage.interface import ScoredPassage
from semsearch.storage.milvus.connection import Connection
from semsearch.storage.milvus.schema import LISTS, document_of

#: The columns that are searched.
VECTORS, WORDS = "vector", "words"
#: The most rows that a server returns for a query.
MAX_ROWS = 16_384
#: For how many rows queries are sent at once.
ROWS_AT_ONCE = 8192
#: How many lists an approximate search searches, if that is enough.
SEARCHED_LISTS = 64


class Search(NamedTuple):
    """Searches the passages of a space."""

    connection: Connection
    collection: str
    column: str  #: `VECTORS` or `WORDS`
    condition: str  #: an expression; empty for none
    lists: int = LISTS  #: how many to search, if that is enough

    def best(self, queries: Sequence[Any], k: int, per_document: int) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query; see `Reader.search_vectors`."""
        limit = min(2 * k + 8, MAX_ROWS)
        step = max(1, ROWS_AT_ONCE // limit)
        found: list[list[ScoredPassage]] = []
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            for query, passages in zip(some, self._request(some, limit, self.lists), strict=True):
                found.append(self._completed(query, passages, limit, k, per_document))
        return found

    def _completed(
        self, query: Any, passages: list[ScoredPassage], limit: int, k: int, per_document: int
    ) -> list[ScoredPassage]:
        """The `k` best passages, given the first ones.

        More are requested while fewer than `k` count, or while others may have the same score.
        """
        lists = self.lists
        while True:
            best = _best(passages, per_document)
            if len(best) >= k and best[k - 1].score > passages[-1].score:
                return best[:k]
            if len(passages) == limit < MAX_ROWS:
                limit = min(4 * limit, MAX_ROWS)
            elif len(best) < k and lists < LISTS:
                lists = LISTS  # others may be in the other lists
            else:
                return best[:k]
            [passages] = self._request([query], limit, lists)

    def _request(self, queries: Sequence[Any], limit: int, lists: int) -> list[list[ScoredPassage]]:
        """The best passages of each query, best first."""
        answers = self.connection.call(
            "search",
            self.collection,
            data=list(queries),
            limit=limit,
            filter=self.condition,
            search_params={"params": {"nprobe": lists}},
            anns_field=self.column,
            consistency_level="Session",
        )
        # milvus-lite returns the scores of BM25 with the opposite sign.
        sign = -1 if self.column == WORDS and self.connection.is_file else 1
        return [[_scored(hit, sign) for hit in answer] for answer in answers]


def _scored(hit: Any, sign: int) -> ScoredPassage:
    score = round(sign * hit["distance"], SCORE_DECIMALS)
    return ScoredPassage(document_of(hit.id), hit.id, score)


def _best(passages: list[ScoredPassage], per_document: int) -> list[ScoredPassage]:
    """At most some passages of each document, best first; equal scores by passage id."""
    taken: Counter[int] = Counter()
    best = []
    for passage in sorted(passages, key=lambda one: (-one.score, one.passage_id)):
        taken[passage.document_id] += 1
        if taken[passage.document_id] <= per_document:
            best.append(passage)
    return best
