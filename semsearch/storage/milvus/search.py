"""Search for exactly k passages, with at most some of each document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from semsearch.records import SCORE_DECIMALS
from semsearch.storage.interface import ScoredPassage
from semsearch.storage.milvus.conditions import all_of, one_of
from semsearch.storage.milvus.rows import Rows
from semsearch.storage.milvus.schema import LISTS, READING, WORDS

#: The most rows that a server returns for a query.
MAX_ROWS = 16_384
#: How many queries are sent at once, and for how many rows.
QUERIES_AT_ONCE, ROWS_AT_ONCE = 256, 8192
#: How many of the lists of an approximate index are searched.
SEARCHED_LISTS = 64


class Search:
    """Searches one collection under one condition.

    Args:
        rows: of the index.
        collection: with the vectors of a space, or the words of passages.
        condition: an expression; empty for none.
        kind: `WORDS` for passages.
    """

    def __init__(self, rows: Rows, collection: str, condition: str, kind: str = "") -> None:
        self._rows = rows
        self._collection = collection
        self._condition = condition
        self._kind = kind or rows.record.index_kind

    def best(self, queries: Sequence[Any], k: int, per_document: int) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query; see `Reader.search_vectors`."""
        limit = min(2 * k + 8, MAX_ROWS)
        step = min(QUERIES_AT_ONCE, max(1, ROWS_AT_ONCE // limit))
        found: list[list[ScoredPassage]] = []
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            for query, first in zip(some, self._request(some, limit), strict=True):
                best = self._completed(query, first, limit, k, per_document)
                if len(best) < k and self._kind == "IVF_FLAT":  # others may be in the other lists
                    [first] = self._request([query], limit, lists=LISTS)
                    best = self._completed(query, first, limit, k, per_document, lists=LISTS)
                found.append(best)
        return found

    def _completed(
        self,
        query: Any,
        last: list[ScoredPassage],
        limit: int,
        k: int,
        per_document: int,
        lists: int = SEARCHED_LISTS,
    ) -> list[ScoredPassage]:
        """The `k` best passages, given those of the first request.

        More are requested while fewer than `k` count, or while others may have the same score.
        """
        passages, seen = last, list[ScoredPassage]()
        best = _best(passages, per_document)
        while len(last) == limit and (len(best) < k or best[k - 1].score <= last[-1].score):
            if limit < MAX_ROWS:
                limit = min(4 * limit, MAX_ROWS)
            elif self._kind == WORDS:  # milvus-lite scores words by the passages not left out
                break
            else:
                seen = passages
            [last] = self._request([query], limit, seen, lists)
            passages = [*seen, *last]
            best = _best(passages, per_document)
        return best[:k]

    def _request(
        self,
        queries: Sequence[Any],
        limit: int,
        seen: Sequence[ScoredPassage] = (),
        lists: int = SEARCHED_LISTS,
    ) -> list[list[ScoredPassage]]:
        """The best passages of each query, best first, without those seen before."""
        others = f"not ({one_of('passage', [one.passage_id for one in seen])})" if seen else ""
        answers = self._rows.connection.call(
            "search",
            self._collection,
            data=list(queries),
            limit=limit,
            filter=all_of(self._condition, others),
            output_fields=["document"],
            search_params={"params": {"nprobe": lists} if self._kind == "IVF_FLAT" else {}},
            anns_field="vector",
            **READING,
        )
        # milvus-lite returns the scores of BM25 with the opposite sign.
        sign = -1 if self._kind == WORDS and self._rows.connection.target.is_file else 1
        return [[_candidate(hit, sign) for hit in answer] for answer in answers]


def _candidate(hit: Any, sign: int) -> ScoredPassage:
    score = round(sign * hit["distance"], SCORE_DECIMALS)
    return ScoredPassage(hit["entity"]["document"], hit.id, score)


def _best(passages: list[ScoredPassage], per_document: int) -> list[ScoredPassage]:
    """At most some passages of each document, best first; equal scores by passage id."""
    taken: Counter[int] = Counter()
    best = []
    for passage in sorted(passages, key=lambda one: (-one.score, one.passage_id)):
        taken[passage.document_id] += 1
        if taken[passage.document_id] <= per_document:
            best.append(passage)
    return best
