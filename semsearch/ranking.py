"""Ranking the documents of an index: by vectors, by words, by both, and reranked."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

from semsearch.arguments import (
    check_choice,
    check_items,
    check_readable,
    check_text,
    check_texts,
    check_whole_number,
    shown,
)
from semsearch.errors import ArgumentError, EncoderError, IndexChangedError, NoVectorError
from semsearch.filters import Condition
from semsearch.fusion import reciprocal_rank_fusion
from semsearch.protocols import Encoder, Matrix, Reranker
from semsearch.records import Hit, Hits, SearchMode
from semsearch.stores.protocol import Candidate, StoreState
from semsearch.stores.space import Space
from semsearch.vectors import check_unit

#: What is searched for: a text, or a vector of the space's width.
Query: TypeAlias = str | Sequence[float] | NDArray[Any]

#: How many documents each side of a hybrid search brings, or as many as are asked for.
HYBRID_DEPTH = 100

#: How many documents a cross-encoder reads again, or as many as are asked for.
RERANK_DEPTH = 100

#: Below this length, a sum of examples is rounding errors.
MIN_NORM = 1e-4

logger = logging.getLogger(__name__)


class Searched(Protocol):
    """What ranking needs of an index."""

    def read(self) -> AbstractContextManager[StoreState]:
        """One committed state."""

    def has_loaded(self, space: Space) -> bool:
        """Whether the encoder of a space is at hand."""

    def encoder(self, space: Space) -> Encoder:
        """The encoder of a space."""

    def filter(self, state: StoreState, where: str) -> Condition:
        """A filter for documents."""

    def explain_no_match(self, state: StoreState, condition: Condition) -> None:
        """Log that a filter matches no document, if it does not."""


class Options(NamedTuple):
    """What a search is to return; see `Index.search`."""

    k: int
    offset: int
    min_score: float | None
    where: str | None
    mode: SearchMode
    rerank: Reranker | None

    @classmethod
    def checked(
        cls,
        k: int,
        offset: int,
        min_score: float | None,
        where: str | None,
        mode: SearchMode | str,
        rerank: Reranker | None,
    ) -> Options:
        """The options, if they can be used.

        Raises:
            ArgumentError: one of them cannot.
        """
        if where is not None:
            check_text("where", where)
        if rerank is not None and not callable(getattr(rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(rerank)}"
            )
        if min_score is not None and (
            isinstance(min_score, bool) or not isinstance(min_score, (int, float))
        ):
            raise ArgumentError(f"min_score must be a number, not {shown(min_score)}")
        return cls(
            check_whole_number("k", k, 1),
            check_whole_number("offset", offset, 0),
            min_score,
            where,
            check_choice("mode", SearchMode, mode),
            rerank,
        )


def rank(index: Searched, space: Space, queries: Iterable[Query], options: Options) -> list[Hits]:
    """The answers to several queries, in their order. See `Index.search`.

    Args:
        index: what is searched.
        space: the embedding space.
        queries: texts, which are encoded together, or vectors.
        options: checked.
    """
    wanted = _checked_queries(queries, space, options)
    by_meaning = options.mode is not SearchMode.BM25 and bool(wanted)
    if by_meaning and not index.has_loaded(space):
        _look_ahead(index, space, options.where)
    vectors = _vectors(index, space, wanted) if by_meaning else None
    try:
        answers = _answers(index, space, wanted, vectors, options)
    except IndexChangedError:  # written since; a new state is there
        answers = _answers(index, space, wanted, vectors, options)
    return [_chosen(hits, options) for hits in answers]


def reranked(hits: Hits, reranker: Reranker) -> Hits:
    """The hits by a cross-encoder's scores; of equal ones, the one that stood first.

    Raises:
        ArgumentError: the reranker returns something else than a number for each passage.
    """
    found = numpy.asarray(reranker.score(hits.query, [hit.text for hit in hits]))
    if found.shape != (len(hits),) or found.dtype.kind not in "fiu" or numpy.isnan(found).any():
        raise ArgumentError(
            f"the reranker must return {len(hits)} numbers, one a passage, not {shown(found)}"
        )
    scored = sorted(zip(found.tolist(), hits, strict=True), key=lambda pair: -pair[0])
    ranked = enumerate(scored, start=1)
    return Hits(hits.query, (hit._replace(rank=n, score=score) for n, (score, hit) in ranked))


def check_weights(examples: str | Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    """Examples of `Index.more_like` with their weights.

    Raises:
        ArgumentError: there is none, or a weight is not a number.
    """
    if isinstance(examples, Mapping):
        weights = dict(examples)
    else:
        ids = [examples] if isinstance(examples, str) else check_texts("examples", examples)
        weights = dict.fromkeys(ids, 1.0)
    if not weights:
        raise ArgumentError("more_like needs the id of a document")
    for name, weight in weights.items():
        check_text("the id of an example", name)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise ArgumentError(f"the weight of '{name}' must be a number, not {shown(weight)}")
    return weights


def example_vector(state: StoreState, space: Space, weights: Mapping[str, float]) -> Matrix:
    """The weighted sum of documents' vectors, each the mean of its passages', of unit length.

    Raises:
        ArgumentError: the index has no document of such an id.
    """
    found = state.document_vectors(space, list(weights))
    if missing := [name for name in weights if name not in found]:
        raise ArgumentError(f"no document '{missing[0]}' in this index")
    means = {name: vectors.mean(axis=0) for name, vectors in found.items()}
    total: Matrix = numpy.sum(
        [weights[name] * mean / numpy.linalg.norm(mean) for name, mean in means.items()], axis=0
    )
    if not numpy.linalg.norm(total) > MIN_NORM:
        raise ArgumentError("the examples cancel each other out; give one of them more weight")
    return total


def _look_ahead(index: Searched, space: Space, where: str | None) -> None:
    """Report a wrong filter before a model is loaded; read vectors while one is loading."""
    with suppress(IndexChangedError), index.read() as state:
        if where is not None:
            index.filter(state, where)
        state.prepare(space)


def _answers(
    index: Searched,
    space: Space,
    queries: Sequence[Query],
    vectors: Matrix | None,
    options: Options,
) -> list[Hits]:
    """The answers of one committed state, before they are reranked and cut."""
    found = options.offset + options.k
    if options.rerank is not None:
        found = max(found, RERANK_DEPTH)
    with index.read() as state:
        condition = None if options.where is None else index.filter(state, options.where)
        depth = max(found, HYBRID_DEPTH) if options.mode is SearchMode.HYBRID else found
        rankings = []
        if vectors is not None:
            rankings.append(state.search_vectors(space, vectors, depth, condition))
        if options.mode is not SearchMode.SEMANTIC:
            rankings.append([state.search_words(str(text), depth, condition) for text in queries])
        if condition is not None and not any(any(ranking) for ranking in rankings):
            index.explain_no_match(state, condition)
        return [
            _hits(state, query if isinstance(query, str) else "", _fused(ranked)[:found])
            for query, *ranked in zip(queries, *rankings, strict=True)
        ]


def _chosen(hits: Hits, options: Options) -> Hits:
    """The part of the hits that is asked for."""
    if options.rerank is not None:
        hits = reranked(hits, options.rerank)
    least = options.min_score
    kept = [hit for hit in hits if least is None or hit.score >= least]
    return Hits(hits.query, kept[options.offset : options.offset + options.k])


def _fused(rankings: Sequence[Sequence[Candidate]]) -> Sequence[Candidate]:
    if len(rankings) == 1:
        return rankings[0]
    chunk = {item.document_id: item.chunk_id for ranking in reversed(rankings) for item in ranking}
    fused = reciprocal_rank_fusion([[item.document_id for item in one] for one in rankings])
    candidates = [Candidate(document, chunk[document], score) for document, score in fused]
    return sorted(candidates, key=lambda item: (-item.score, item.chunk_id))


def _hits(state: StoreState, query: str, candidates: Sequence[Candidate]) -> Hits:
    """The candidates with their passages and metadata."""
    passages = state.fetch([candidate.chunk_id for candidate in candidates])
    hits = Hits(query)
    for rank, candidate in enumerate(candidates, start=1):
        chunk, metadata, title = passages[candidate.chunk_id]
        hits.append(
            Hit(rank, candidate.score, chunk.document_id, chunk, chunk.text, metadata, title)
        )
    return hits


def _vectors(index: Searched, space: Space, queries: Sequence[Query]) -> Matrix:
    """The unit vectors of the queries, shape (len(queries), dimension)."""
    texts = [query for query in queries if isinstance(query, str)]
    vectors = iter(_encoded(index.encoder(space), texts) if texts else ())
    rows = [next(vectors) if isinstance(query, str) else query for query in queries]
    return numpy.array(rows, numpy.float32)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    _warn_of_cut_queries(encoder, texts)
    try:
        return check_unit(encoder.encode_queries(texts), encoder.spec)
    except NoVectorError as error:
        query = texts[error.rows[0]]
        raise EncoderError(
            f"encoder '{encoder.spec}' returns no vector (but NaN or zero) for the query "
            f"{shown(query)}; --mode bm25 needs none"
        ) from error


def _warn_of_cut_queries(encoder: Encoder, texts: Sequence[str]) -> None:
    """Report each query that the encoder does not read to its end."""
    limit = encoder.max_query_tokens
    if limit is None:
        return
    for text in texts:
        # A token is at least a byte: a query of so few need not be tokenised.
        if len(text) > limit // 4 and len(text.encode()) > limit:
            tokens = encoder.token_spans(text)
            if len(tokens) > limit:
                rest = text[tokens[limit][0] :]
                logger.warning(
                    "the query has %d tokens, of which %s reads the first %d; left out: %s",
                    len(tokens),
                    encoder.spec,
                    limit,
                    shown(rest),
                )


def _checked_queries(queries: Iterable[Query], space: Space, options: Options) -> list[Query]:
    if isinstance(queries, str):
        raise ArgumentError("search_many takes a list of texts; for one text there is search")
    if isinstance(queries, numpy.ndarray):
        queries = list(queries)
    listed = check_items("queries", queries, "texts or vectors")
    return [
        _unit(query, space, options) if _is_vector(query) else check_readable("the query", query)
        for query in listed
    ]


def _is_vector(query: object) -> TypeGuard[Sequence[float] | NDArray[Any]]:
    return isinstance(query, numpy.ndarray) or (
        isinstance(query, (list, tuple)) and not any(isinstance(item, str) for item in query)
    )


def _unit(vector: Sequence[float] | NDArray[Any], space: Space, options: Options) -> Matrix:
    """A vector of unit length, if it can be searched for."""
    if options.mode is not SearchMode.SEMANTIC or options.rerank is not None:
        raise ArgumentError("a vector has no words: mode must be 'semantic', and rerank None")
    try:
        found = numpy.asarray(vector, numpy.float64)
    except (TypeError, ValueError):
        found = numpy.empty(0)
    if found.shape != (space.dimension,):
        raise ArgumentError(
            f"a vector for space '{space.name}' has {space.dimension} numbers, not {shown(vector)}"
        )
    length = numpy.linalg.norm(found)
    if not numpy.isfinite(length) or length == 0:
        raise ArgumentError("the query vector is zero, NaN or infinite")
    return (found / length).astype(numpy.float32)
