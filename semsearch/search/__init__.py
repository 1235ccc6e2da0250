"""Search: from queries to ranked hits, by vectors, by words or both.

`search` runs all steps on one committed state; the other modules are its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from semsearch.protocols import Encoder, Matrix
from semsearch.records import Hit, Hits, SearchMode
from semsearch.search.options import Options
from semsearch.search.queries import ParsedQuery, example_vector, query_vectors
from semsearch.search.retrieval import FirstStage, RetrievedHits, Stopwatch
from semsearch.storage.interface import Reader, text_hash, unit_vectors
from semsearch.storage.spaces import Space

if TYPE_CHECKING:
    from semsearch.filters import Condition

#: Hits that maximal marginal relevance reorders.
MMR_DEPTH = 100


def search(
    reader: Reader,
    space: Space,
    encoder_of: Callable[[Space], Encoder],
    queries: Sequence[ParsedQuery],
    condition: Condition | None,
    options: Options,
) -> list[Hits]:
    """The hits of several queries, in their order. See `SearchOptions`.

    Args:
        reader: the state to search.
        space: the embedding space.
        encoder_of: loads the encoder of a space; not called if no text is encoded.
        queries: texts, which are encoded together, or vectors.
        condition: of the filter; None for all documents.
        options: of the search.
    """
    clock = Stopwatch()
    encoder, vectors = None, None
    if options.mode is not SearchMode.BM25 and queries:
        reader.prepare(space)  # a model may be loading in a thread meanwhile
        if options.explain or any(query.to_encode for query in queries):
            encoder = encoder_of(space)
        examples = example_vector(reader, space, options.examples) if options.examples else None
        with clock("encode"):
            vectors = query_vectors(encoder, queries, examples)
    first_stage = FirstStage(reader, space, condition, options, clock)
    retrieve = _distinct if options.collapse_duplicates else FirstStage.retrieve
    retrieved = retrieve(first_stage, queries, vectors, _hits_needed(options))
    answers = list(map(partial(_selected, first_stage), queries, retrieved))
    if options.explain:
        from semsearch.search.explaining import explained

        with clock("explain"):
            rows = [None] * len(queries) if vectors is None else list(vectors)
            answers = list(map(partial(explained, reader, encoder), queries, rows, answers))
        for hits in answers:
            hits.stages = clock.stages
    return answers


def _hits_needed(options: Options) -> int:
    """How many hits of the first stage the other steps need."""
    needed = options.offset + options.k
    if options.mmr is not None:
        needed = max(needed, MMR_DEPTH)
    return needed if options.rerank is None else max(needed, options.rerank_depth)


def _distinct(
    first_stage: FirstStage, queries: Sequence[ParsedQuery], vectors: Matrix | None, needed: int
) -> list[RetrievedHits]:
    """The hits of the first stage without near-duplicates, from as deep a search as they need."""
    from semsearch.search.diversity import without_duplicates

    depth = needed
    while True:
        found = first_stage.retrieve(queries, vectors, depth)
        with first_stage.clock("diversity"):
            answers = []
            for answer in found:
                hits = without_duplicates(answer.hits, _vectors(first_stage, answer.hits))
                answers.append(answer._replace(hits=Hits(answer.hits.query, hits)))
        if all(len(answer.hits) >= needed or answer.is_all for answer in answers):
            return answers
        depth *= 4


def _selected(first_stage: FirstStage, query: ParsedQuery, retrieved: RetrievedHits) -> Hits:
    """The requested hits, after reranking and diversification."""
    options, clock, hits = first_stage.options, first_stage.clock, retrieved.hits
    if options.rerank is not None:
        from semsearch.search.reranking import reranked

        with clock("rerank"):
            text = " ".join(query.to_encode)
            hits = reranked(hits, text, options.rerank, options.rerank_depth, options.rerank_budget)
    kept: list[Hit] = hits
    # The scores of hits that a reranker did not read are on another scale.
    if options.rerank is not None and options.min_score is not None:
        kept = [hit for hit in hits[: hits.reranked] if hit.score >= options.min_score]
    if options.mmr is not None:
        from semsearch.search.diversity import maximal_marginal_relevance

        depth = min(MMR_DEPTH, hits.reranked or MMR_DEPTH)
        with clock("diversity"):
            first, rest = kept[:depth], kept[depth:]
            vectors = _vectors(first_stage, first)
            kept = maximal_marginal_relevance(first, vectors, options.mmr) + rest
    wanted = kept[options.offset : options.offset + options.k]
    numbered = [
        hit._replace(rank=rank) for rank, hit in enumerate(wanted, start=options.offset + 1)
    ]
    return Hits(hits.query, numbered, reranked=hits.reranked)


def _vectors(first_stage: FirstStage, hits: Sequence[Hit]) -> Matrix:
    """The vectors of the passages of hits, shape (len(hits), dimension)."""
    hashes = [text_hash(hit.text) for hit in hits]
    return unit_vectors(first_stage.reader, first_stage.space, hashes)
