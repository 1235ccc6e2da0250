"""The first stage of a search: rankings by vectors and by words, fused, with their passages."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from semsearch.protocols import Matrix
from semsearch.records import Explanation, Hit, Hits, HitScores, SearchMode, Stage
from semsearch.search.options import Options
from semsearch.search.queries import ParsedQuery
from semsearch.storage.interface import FoundPassage, Reader, Restriction, ScoredPassage
from semsearch.storage.interruption import check_interrupted
from semsearch.storage.spaces import Space

if TYPE_CHECKING:
    from semsearch.filters import Condition

#: Documents of each ranking that determine the first results of hybrid search.
HYBRID_DEPTH = 100


class Stopwatch:
    """Measures the total time of each stage of a search."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time of a block to the stage of this name; abandoned searches end before it."""
        check_interrupted()
        started = time.perf_counter()
        yield
        spent = (time.perf_counter() - started) * 1000
        before = self._stages.get(name, Stage(name, 0)).milliseconds
        self._stages[name] = Stage(name, before + spent)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of their first start."""
        return tuple(self._stages.values())


class RankedPassage(NamedTuple):
    """A passage with its rank by vectors and by words."""

    document_id: int
    passage_id: int
    score: float
    scores: HitScores
    dense_rank: int | None = None
    bm25_rank: int | None = None


class RetrievedHits(NamedTuple):
    """The hits of one query, best first."""

    hits: Hits
    is_all: bool  #: whether a deeper search would find no further ones


@dataclass
class FirstStage:
    """Retrieves the hits of queries from one committed state."""

    reader: Reader
    space: Space
    condition: Condition | None  #: of the filter; None for all documents
    options: Options
    clock: Stopwatch

    def __post_init__(self) -> None:
        ids = list(self.options.examples)
        known = self.reader.stored_documents(ids) if ids else {}
        self._examples = {document.document_id for document in known.values()}

    def retrieve(
        self, queries: Sequence[ParsedQuery], vectors: Matrix | None, k: int
    ) -> list[RetrievedHits]:
        """At most `k` hits per query.

        `vectors` are the unit vectors of the queries; None to search by words alone.
        """
        rankings = self._rankings(queries, vectors, k)
        with self.clock("fetch"):
            passages = self.reader.fetch(
                list({passage.passage_id for ranking in rankings for passage in ranking[:k]})
            )
            return list(map(partial(self._retrieved, passages, k), queries, rankings))

    def _rankings(
        self, queries: Sequence[ParsedQuery], vectors: Matrix | None, k: int
    ) -> list[list[RankedPassage]]:
        """The passages of each query, best first, without those of the examples."""
        options = self.options
        depth = max(k, HYBRID_DEPTH) if options.mode is SearchMode.HYBRID else k
        depth += len(self._examples) * options.per_document
        dense: list[list[ScoredPassage]] = [[] for _ in queries]
        words: list[list[ScoredPassage]] = [[] for _ in queries]
        groups: dict[Restriction, list[int]] = defaultdict(list)
        for place, query in enumerate(queries):
            asked = tuple(options.require), query.excluded, options.per_document
            groups[Restriction(self.condition, *asked)].append(place)
        for restriction, places in groups.items():
            if vectors is not None:
                with self.clock("vectors"):
                    found = self.reader.search_vectors(
                        self.space, vectors[places], depth, restriction
                    )
                for place, ranking in zip(places, found, strict=True):
                    dense[place] = self._without_examples(ranking)
            if options.mode is not SearchMode.SEMANTIC:
                with self.clock("words"):
                    for place in places:
                        query = queries[place]
                        ranking = self.reader.search_bm25(
                            query.words, depth, restriction, query.phrases
                        )
                        words[place] = self._without_examples(ranking)
        if options.mode is SearchMode.HYBRID:
            return list(map(self._fused, dense, words))
        if options.mode is SearchMode.BM25:
            return [
                [
                    RankedPassage(*one, HitScores(bm25=one.score), bm25_rank=rank)
                    for rank, one in enumerate(ranking, start=1)
                ]
                for ranking in words
            ]
        return [
            [
                RankedPassage(*one, HitScores(cosine=one.score), dense_rank=rank)
                for rank, one in enumerate(ranking, start=1)
            ]
            for ranking in dense
        ]

    def _without_examples(self, ranking: list[ScoredPassage]) -> list[ScoredPassage]:
        if not self._examples:
            return ranking
        return [passage for passage in ranking if passage.document_id not in self._examples]

    def _fused(
        self, dense: Sequence[ScoredPassage], words: Sequence[ScoredPassage]
    ) -> list[RankedPassage]:
        """Documents, or passages if a document may have several hits, by both rankings."""
        from semsearch.search.fusion import fused_scores  # only for hybrid search

        per_document = self.options.per_document
        by_document = per_document == 1
        sides = [
            {one.document_id if by_document else one.passage_id: one for one in side}
            for side in (dense, words)
        ]
        ranks = [{item: rank for rank, item in enumerate(side, start=1)} for side in sides]
        ranking = []
        taken: Counter[int] = Counter()
        for item, score, deciding in fused_scores(sides, self.options.dense_weight, HYBRID_DEPTH):
            best = sides[deciding[0]][item]
            taken[best.document_id] += 1
            if taken[best.document_id] > per_document:
                continue
            # Scores and ranks of the other ranking depend on how many hits are requested.
            scores = {number: sides[number][item].score for number in deciding}
            places = {number: ranks[number][item] for number in deciding}
            parts = HitScores(scores.get(0), scores.get(1))
            ranking.append(
                RankedPassage(*best._replace(score=score), parts, places.get(0), places.get(1))
            )
        return ranking

    def _retrieved(
        self,
        passages: Mapping[int, FoundPassage],
        k: int,
        query: ParsedQuery,
        ranking: Sequence[RankedPassage],
    ) -> RetrievedHits:
        hits = Hits(query.text)
        least = None if self.options.rerank else self.options.min_score
        present = (ranked for ranked in ranking[:k] if ranked.passage_id in passages)
        for rank, ranked in enumerate(present, start=1):
            if least is not None and ranked.score < least:
                return RetrievedHits(hits, is_all=True)
            passage, metadata, title = passages[ranked.passage_id]
            explanation = None
            if self.options.explain:
                explanation = Explanation(rank, ranked.score, ranked.dense_rank, ranked.bm25_rank)
            hits.append(
                Hit(
                    rank,
                    ranked.score,
                    passage.document_id,
                    passage,
                    passage.text,
                    dict(metadata),  # other queries may find the document, too
                    title,
                    ranked.scores,
                    explanation=explanation,
                )
            )
        return RetrievedHits(hits, is_all=len(ranking) < k)
