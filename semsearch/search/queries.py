"""Parses queries, and encodes them as vectors."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.errors import (
    ArgumentError,
    DocumentNotFoundError,
    NoVectorError,
    check_items,
    check_readable,
    shown,
)
from semsearch.protocols import Encoder, Matrix, checked_vectors
from semsearch.records import SearchMode
from semsearch.search.options import Options
from semsearch.storage.interface import Reader, unit_vectors
from semsearch.storage.spaces import Space

logger = logging.getLogger(__name__)

#: A query: a text, several texts whose vectors are added, or a vector of the space's dimension.
Query: TypeAlias = str | Sequence[str] | Sequence[float] | NDArray[Any]

#: Shorter sums of vectors are rounding errors.
MIN_NORM = 1e-4


class ParsedQuery(NamedTuple):
    """A validated query: texts or a vector; neither if it has only examples."""

    text: str  #: of the query, for results
    to_encode: tuple[str, ...] = ()
    vector: Matrix | None = None
    words: str = ""  #: for BM25
    phrases: tuple[str, ...] = ()  #: passages that contain them rank above others
    excluded: tuple[str, ...] = ()  #: words and phrases that no passage of a document may contain


def parse_queries(queries: Iterable[Query], space: Space, options: Options) -> list[ParsedQuery]:
    """Validate queries.

    Raises:
        ArgumentError: a query is empty, not Unicode, or a vector of the wrong dimension.
    """
    if isinstance(queries, str):
        raise ArgumentError("search_many takes a list of texts; use search for one text")
    if isinstance(queries, numpy.ndarray):
        queries = list(queries)
    return [_parsed(query, space, options) for query in check_items("queries", queries, "queries")]


def log_operators(queries: Sequence[ParsedQuery], searched: Sequence[ParsedQuery]) -> None:
    """Log a warning that says which operators were read.

    Args:
        queries: with all operators.
        searched: the same queries, without exclusions that would have left no hits.
    """
    with_operators = [
        (query, used)
        for query, used in zip(queries, searched, strict=True)
        if query.phrases or query.excluded
    ]
    for query, used in with_operators[:1]:
        effects = []
        if query.phrases:
            effects.append(f"passages with {', '.join(map(shown, query.phrases))} rank higher")
        if query.excluded:
            effect = "are excluded" if used.excluded else "are not: no hits would be left"
            effects.append(f"documents with {', '.join(map(shown, query.excluded))} {effect}")
        if others := len(with_operators) - 1:
            effects.append(f"and others in {others:,} of the other queries")
        logger.warning("operators in the query: %s", "; ".join(effects))


def query_vectors(
    encoder: Encoder | None, queries: Sequence[ParsedQuery], examples: Matrix | None
) -> Matrix:
    """The unit vector of each query, shape (len(queries), dimension).

    Args:
        encoder: encodes their texts; None if there are no texts.
        queries: the vector of several texts, or of a query with examples, is their sum.
        examples: the vector of the examples, added to each query.

    Raises:
        NoVectorError: the encoder returns no vector for a text.
        ArgumentError: the vectors to add cancel each other out.
    """
    texts = [text for query in queries for text in query.to_encode]
    encoded = iter(_encoded(encoder, texts) if encoder is not None else ())
    rows = []
    for query in queries:
        parts: list[Matrix] = [next(encoded) for _ in query.to_encode]
        parts += [part for part in (query.vector, examples) if part is not None]
        rows.append(parts[0] if len(parts) == 1 and examples is None else _direction(parts))
    return numpy.array(rows, numpy.float32)


def _direction(parts: Sequence[Matrix]) -> Matrix:
    """The sum of vectors, normalised."""
    total = numpy.sum(parts, axis=0)
    length = numpy.linalg.norm(total)
    if not length > MIN_NORM:
        raise ArgumentError("the examples cancel each other out; give one of them more weight")
    found: Matrix = total / length
    return found


def example_vector(state: Reader, space: Space, weights: Mapping[str, float]) -> Matrix:
    """The weighted sum of document vectors: of each, the normalised mean of its passages.

    Raises:
        ArgumentError: the index has no document with such an id.
    """
    passages = state.passages_of(list(weights))
    if missing := [name for name in weights if name not in passages]:
        raise DocumentNotFoundError(f"no document '{missing[0]}' in this index")
    means = {
        name: unit_vectors(state, space, [passage.text_hash for passage in found]).mean(axis=0)
        for name, found in passages.items()
    }
    total: Matrix = numpy.sum(
        [weights[name] * mean / numpy.linalg.norm(mean) for name, mean in means.items()], axis=0
    )
    return total


def _parsed(query: Query, space: Space, options: Options) -> ParsedQuery:
    texts: Sequence[object] = ()
    if isinstance(query, str):
        texts = [query]
    elif isinstance(query, (list, tuple)) and any(isinstance(item, str) for item in query):
        texts = query
    elif isinstance(query, (list, tuple)) and not query and options.examples:
        if options.mode is SearchMode.HYBRID or options.rerank is not None:
            raise ArgumentError(
                "examples have no words to search for: mode must be 'semantic', and rerank None"
            )
        return ParsedQuery("")
    else:
        return ParsedQuery("", vector=_unit(query, space, options))
    read = [check_readable("the query", text) for text in texts]
    if options.mode is SearchMode.SEMANTIC:
        return ParsedQuery(" ".join(read), tuple(read))
    from semsearch.storage.words import parse_query  # only for BM25

    parsed = [parse_query(text) for text in read]
    words = tuple(one.words for one in parsed)
    return ParsedQuery(
        " ".join(read),
        words,
        words=" ".join(words),
        phrases=tuple(phrase for one in parsed for phrase in one.phrases),
        excluded=tuple(phrase for one in parsed for phrase in one.excluded),
    )


def _unit(vector: Any, space: Space, options: Options) -> Matrix:
    """Validate a query vector, and normalise it."""
    if not isinstance(vector, (list, tuple, numpy.ndarray)):
        check_readable("the query", vector)
    if options.mode is not SearchMode.SEMANTIC or options.rerank is not None:
        raise ArgumentError("a vector has no words: mode must be 'semantic', and rerank None")
    try:
        found = numpy.asarray(vector, numpy.float64)
    except (TypeError, ValueError, OverflowError):
        found = numpy.empty(0)
    if found.shape != (space.dimension,):
        raise ArgumentError(
            f"a vector for space '{space.name}' has {space.dimension} numbers, not {shown(vector)}"
        )
    length = numpy.linalg.norm(found)
    if not numpy.isfinite(length) or length == 0:
        raise ArgumentError("the query vector is zero, NaN or infinite")
    return (found / length).astype(numpy.float32)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    _warn_of_cut_queries(encoder, texts)
    try:
        return checked_vectors(encoder.encode_queries(texts), encoder, len(texts))
    except NoVectorError as error:
        query = texts[error.rows[0]]
        message = (
            f"encoder '{encoder.spec}' returns no unit vector (NaN, zero or not normalised) for "
            f"the query {shown(query)}; --mode bm25 needs none"
        )
        raise NoVectorError(message, error.rows) from error


def _warn_of_cut_queries(encoder: Encoder, texts: Sequence[str]) -> None:
    """Log a warning for each query that is longer than the encoder's limit."""
    limit = encoder.max_query_tokens
    if limit is None:
        return
    for text in texts:
        if len(text.encode()) <= limit:  # a token is at least a byte
            continue
        tokens = encoder.token_spans(text)
        if len(tokens) > limit:
            rest = shown(text[tokens[limit][0] :])
            count = f"{len(tokens)} tokens; {encoder.spec} reads only the first {limit}"
            logger.warning("the query has %s, without: %s", count, rest)
