"""Search: from queries to ranked hits, by vectors, by words or both.

`rank` runs the whole search; the other modules are its steps, most of them optional.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy

from semsearch.errors import IndexChangedError
from semsearch.protocols import Encoder, Matrix
from semsearch.records import Explanation, Hit, Hits, HitScores, SearchMode, Stage
from semsearch.search.queries import (
    Options,
    Query,
    Wanted,
    checked_queries,
    example_vector,
    log_operators,
    query_vectors,
)
from semsearch.stores.protocol import Candidate, FoundPassage, Restriction, Space, StoreState

if TYPE_CHECKING:
    from semsearch.filters import Condition

#: Documents of each ranking that determine the first results of hybrid search.
HYBRID_DEPTH = 100

#: Hits that maximal marginal relevance reorders.
MMR_DEPTH = 100

#: Passages read from the store at once.
PASSAGES_AT_ONCE = 10_000


class Searched(Protocol):
    """The parts of an index that ranking needs."""

    def read(self) -> AbstractContextManager[StoreState]:
        """One committed state."""

    def has_loaded(self, space: Space) -> bool:
        """Whether the encoder of a space is loaded."""

    def encoder(self, space: Space) -> Encoder:
        """The encoder of a space."""

    def filter(self, state: StoreState, where: str) -> Condition:
        """Parse and check a filter."""

    def explain_no_match(self, state: StoreState, condition: Condition) -> None:
        """Log a warning if a filter matches no document."""


class Ranked(NamedTuple):
    """A chunk that a search found, with its rank by vectors and by words."""

    document_id: int
    chunk_id: int
    score: float
    scores: HitScores
    dense_rank: int | None = None
    bm25_rank: int | None = None


class Answer(NamedTuple):
    """The hits of one query before reranking and truncation, with their vectors if needed."""

    query: Wanted  #: without exclusions that would leave no hits
    hits: Hits
    found: int  #: the number of chunks found, those of the examples included
    vectors: Mapping[int, Matrix]  #: by chunk id; empty unless needed


def rank(index: Searched, space: Space, queries: Iterable[Query], options: Options) -> list[Hits]:
    """The hits of several queries, in their order. See `SearchOptions`.

    Args:
        index: the index to search.
        space: the embedding space.
        queries: texts, which are encoded together, or vectors.
        options: the options of the search.
    """
    clock = Stopwatch()
    asked = checked_queries(queries, space, options)
    wanted = list(asked)
    depth = _depth(options)
    by_meaning = options.mode is not SearchMode.BM25 and bool(wanted)
    if by_meaning and not index.has_loaded(space):
        _look_ahead(index, space, options.where)
    vectors = _vectors(index, space, wanted, options, clock) if by_meaning else None
    chosen = [Hits("")] * len(wanted)
    reranked: dict[int, Hits] = {}
    places = list(range(len(wanted)))
    while True:
        queries_left = [wanted[place] for place in places]
        vectors_left = None if vectors is None else vectors[places]
        try:
            answers = _answers(index, space, queries_left, vectors_left, depth, options, clock)
        except IndexChangedError:  # the index was written meanwhile: read the new state
            answers = _answers(index, space, queries_left, vectors_left, depth, options, clock)
        lacking = []
        for place, answer in zip(places, answers, strict=True):
            wanted[place], found = answer.query, answer.hits
            if options.rerank is not None:
                with clock("rerank"):
                    found = _reranked(found, wanted[place], options, reranked.get(place))
                reranked[place] = found
            hits = _ordered(found, answer.vectors, options, clock)
            if _lacks_hits(answer, len(hits), depth, options):
                lacking.append(place)
            first = options.offset + options.k
            chosen[place] = Hits(hits.query, hits[options.offset : first], reranked=hits.reranked)
        if not lacking:
            break
        places, depth = lacking, 4 * depth
    log_operators(asked, wanted)
    if options.explain:
        from semsearch.search.explaining import explained

        encoder = index.encoder(space) if vectors is not None else None
        with clock("explain"), index.read() as state:
            chosen = [
                explained(hits, state, query, encoder, None if vectors is None else vectors[place])
                for place, (hits, query) in enumerate(zip(chosen, wanted, strict=True))
            ]
        for hits in chosen:
            hits.stages = clock.stages
    return chosen


def _look_ahead(index: Searched, space: Space, where: str | None) -> None:
    """Check the filter before a model is loaded, and read vectors while it is loading."""
    with suppress(IndexChangedError), index.read() as state:
        if where is not None:
            index.filter(state, where)
        state.prepare(space)


def _vectors(
    index: Searched, space: Space, queries: Sequence[Wanted], options: Options, clock: Stopwatch
) -> Matrix:
    """The unit vectors of the queries, shape (len(queries), dimension)."""
    examples = None
    if options.examples:
        with index.read() as state:
            examples = example_vector(state, space, options.examples)
    encoder = index.encoder(space) if any(query.to_encode for query in queries) else None
    with clock("encode"):
        return query_vectors(encoder, queries, examples)


def _depth(options: Options) -> int:
    """How many candidates are needed for the requested hits, which the examples are not."""
    wanted = _needed(options)
    if options.rerank is not None:
        wanted = max(wanted, options.rerank_depth)
    return wanted + len(options.examples) * options.per_document


def _needed(options: Options) -> int:
    """How many hits are needed before truncation."""
    wanted = options.offset + options.k
    return wanted if options.mmr is None else max(wanted, MMR_DEPTH)


def _lacks_hits(answer: Answer, distinct: int, depth: int, options: Options) -> bool:
    """Whether a deeper search would find hits in place of the duplicates dropped."""
    if not options.fold_duplicates or answer.found < depth or distinct >= _needed(options):
        return False
    least = options.min_score
    if least is None or not answer.hits:
        return True
    return options.rerank is None and answer.hits[-1].score >= least


def _answers(
    index: Searched,
    space: Space,
    queries: Sequence[Wanted],
    vectors: Matrix | None,
    wanted: int,
    options: Options,
    clock: Stopwatch,
) -> list[Answer]:
    """At most `wanted` hits per query from one committed state, before reranking."""
    needs_vectors = options.fold_duplicates or options.mmr is not None
    with _garbage_uncollected(), index.read() as state:
        condition = None if options.where is None else index.filter(state, options.where)
        rankings = _rankings(state, space, queries, vectors, wanted, condition, options, clock)
        if any(query.excluded for query, found in zip(queries, rankings, strict=True) if not found):
            queries = [
                query if found else query._replace(excluded=())
                for query, found in zip(queries, rankings, strict=True)
            ]
            rankings = _rankings(state, space, queries, vectors, wanted, condition, options, clock)
        if condition is not None and not any(rankings):
            index.explain_no_match(state, condition)
        with clock("fetch"):
            found = _fetched(state, queries, [ranked[:wanted] for ranked in rankings], options)
            rows: dict[int, Matrix] = {}
            if needs_vectors:
                chunk_ids = sorted({hit.chunk.id for hits in found for hit in hits})
                rows = dict(zip(chunk_ids, state.chunk_vectors(space, chunk_ids), strict=True))
    return [
        Answer(query, hits, min(len(ranked), wanted), rows)
        for query, hits, ranked in zip(queries, found, rankings, strict=True)
    ]


def _rankings(
    state: StoreState,
    space: Space,
    queries: Sequence[Wanted],
    vectors: Matrix | None,
    wanted: int,
    condition: Condition | None,
    options: Options,
    clock: Stopwatch,
) -> list[list[Ranked]]:
    """The chunks found for each query, best first."""
    depth = max(wanted, HYBRID_DEPTH) if options.mode is SearchMode.HYBRID else wanted
    dense: list[list[Candidate]] = [[] for _ in queries]
    words: list[list[Candidate]] = [[] for _ in queries]
    groups: dict[Restriction, list[int]] = {}
    for place, query in enumerate(queries):
        restriction = Restriction(condition, tuple(options.require), query.excluded)
        groups.setdefault(restriction, []).append(place)
    for restriction, places in groups.items():
        if vectors is not None:
            plan = state.plan(space, restriction) if options.explain else ""
            with clock("vectors", plan):
                answers = state.search_vectors(
                    space, vectors[places], depth, restriction, options.per_document
                )
            for place, answer in zip(places, answers, strict=True):
                dense[place] = answer
        if options.mode is not SearchMode.SEMANTIC:
            with clock("words"):
                for place in places:
                    query = queries[place]
                    words[place] = state.search_words(
                        query.words, depth, restriction, options.per_document, query.phrases
                    )
    known = state.known(list(options.examples)) if options.examples and options.explain else {}
    examples = {one.document_id for one in known.values()}
    return [_fused(*sides, options, examples) for sides in zip(dense, words, strict=True)]


def _fused(
    dense: Sequence[Candidate],
    words: Sequence[Candidate],
    options: Options,
    examples: Collection[int],
) -> list[Ranked]:
    """The ranking by vectors or by words, or both fused; ranks do not count the examples."""
    if options.mode is SearchMode.SEMANTIC:
        following = count(1)
        return [
            Ranked(
                *one,
                HitScores(one.score),
                None if one.document_id in examples else next(following),
            )
            for one in dense
        ]
    if options.mode is SearchMode.BM25:
        return [
            Ranked(*item, HitScores(bm25=item.score), bm25_rank=place)
            for place, item in enumerate(words, start=1)
        ]
    from semsearch.search.fusion import fused_scores  # only for hybrid search

    sides = [{_item(one, options): one for one in side} for side in (dense, words)]
    ranks = [_ranks(side.values(), options, examples) for side in sides]
    found = []
    for item, score, deciding in fused_scores(sides, options, HYBRID_DEPTH):
        # The others depend on how many hits are requested.
        scores = {number: sides[number][item].score for number in deciding}
        places = {number: ranks[number].get(item) for number in deciding}
        best = sides[deciding[0]][item]._replace(score=score)
        parts = HitScores(scores.get(0), scores.get(1))
        found.append(Ranked(*best, parts, places.get(0), places.get(1)))
    taken: Counter[int] = Counter()
    kept = []
    for ranked in found:
        taken[ranked.document_id] += 1
        if taken[ranked.document_id] <= options.per_document:
            kept.append(ranked)
    return kept


def _ranks(
    side: Iterable[Candidate], options: Options, examples: Collection[int]
) -> dict[int, int]:
    """The ranks of all items but the examples."""
    others = (one for one in side if one.document_id not in examples)
    return {_item(one, options): rank for rank, one in enumerate(others, start=1)}


def _item(candidate: Candidate, options: Options) -> int:
    """The key of fusion: documents, or passages if a document may have several hits."""
    return candidate.document_id if options.per_document == 1 else candidate.chunk_id


def _fetched(
    state: StoreState,
    queries: Sequence[Wanted],
    rankings: Sequence[Sequence[Ranked]],
    options: Options,
) -> list[Hits]:
    """The hits of all queries, with passages and metadata, read for several queries at once."""
    found: list[Hits] = []
    step = max(1, PASSAGES_AT_ONCE // (max(map(len, rankings), default=0) or 1))
    for start in range(0, len(queries), step):
        block = rankings[start : start + step]
        passages = state.fetch(list({item.chunk_id for ranked in block for item in ranked}))
        found += [
            _hits(query.text, ranked, passages, options)
            for query, ranked in zip(queries[start : start + step], block, strict=True)
        ]
    return found


@contextmanager
def _garbage_uncollected() -> Iterator[None]:
    """Pause Python's collection of cyclic garbage.

    Hits create none, but every few hundred of them start a collection that visits all, which takes
    as long as creating them.
    """
    if not gc.isenabled():
        yield
        return
    pause = object()
    _pauses.add(pause)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _pauses.remove(pause)


#: The pauses in progress.
_pauses: set[object] = set()


def _resume_in_child() -> None:
    """Collect garbage in a forked process, which lacks the threads that paused the collection."""
    if _pauses:
        _pauses.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)


def _hits(
    query: str,
    ranked: Sequence[Ranked],
    passages: Mapping[int, FoundPassage],
    options: Options,
) -> Hits:
    """The passages found, without those of the examples, as hits."""
    hits = Hits(query)
    for one in ranked:
        chunk, metadata, title = passages[one.chunk_id]
        if chunk.document_id in options.examples:
            continue
        rank = len(hits) + 1
        explanation = None
        if options.explain:
            explanation = Explanation(rank, one.score, one.dense_rank, one.bm25_rank)
        hits.append(
            Hit(
                rank,
                one.score,
                chunk.document_id,
                chunk,
                chunk.text,
                dict(metadata),  # other queries may find the document, too
                title,
                one.scores,
                explanation=explanation,
            )
        )
    return hits


def _reranked(hits: Hits, query: Wanted, options: Options, before: Hits | None) -> Hits:
    """The hits, the first of them by the cross-encoder's scores.

    Args:
        hits: best first.
        query: their query.
        options: of the search.
        before: the result for the first of these hits; the cross-encoder does not read them again.
    """
    from semsearch.search.reranking import reranked

    if before is not None:
        ids, first = ([hit.chunk.id for hit in some] for some in (before, hits[: len(before)]))
        if sorted(ids) == sorted(first):  # the index was not written meanwhile
            return Hits(hits.query, [*before, *hits[len(before) :]], reranked=before.reranked)
    assert options.rerank is not None  # noqa: S101
    text = " ".join(query.to_encode)
    return reranked(hits, text, options.rerank, options.rerank_depth, options.rerank_budget)


def _ordered(
    hits: Hits, vectors_of: Mapping[int, Matrix], options: Options, clock: Stopwatch
) -> Hits:
    """The hits without duplicates, diversified.

    Args:
        hits: best first.
        vectors_of: the vectors of their chunks, by chunk id; empty unless needed.
        options: of the search.
        clock: measures the time.
    """
    kept = list(hits)
    if options.min_score is not None:
        if hits.reranked:  # the scores of the others are on another scale
            kept = [hit for hit in kept if hit.scores.reranked is not None]
        kept = [hit for hit in kept if hit.score >= options.min_score]
    if kept and vectors_of:
        from semsearch.search.diversity import maximal_marginal_relevance, without_duplicates

        with clock("diversity"):
            vectors = numpy.array([vectors_of[hit.chunk.id] for hit in kept])
            if options.fold_duplicates:
                kept, vectors = without_duplicates(kept, vectors)
            if options.mmr is not None:
                first, rest = kept[:MMR_DEPTH], kept[MMR_DEPTH:]
                kept = maximal_marginal_relevance(first, vectors[:MMR_DEPTH], options.mmr) + rest
    ranked = [
        hit if hit.rank == rank else hit._replace(rank=rank)
        for rank, hit in enumerate(kept, start=1)
    ]
    return Hits(hits.query, ranked, reranked=hits.reranked)


class Stopwatch:
    """Measures the total time of each stage of a search."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}

    @contextmanager
    def __call__(self, name: str, plan: str = "") -> Iterator[None]:
        """Add the time of a block to the stage of this name."""
        started = time.perf_counter()
        yield
        spent = (time.perf_counter() - started) * 1000
        before = self._stages.get(name, Stage(name, 0))
        self._stages[name] = Stage(name, before.milliseconds + spent, plan or before.plan)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of their first start."""
        return tuple(self._stages.values())
