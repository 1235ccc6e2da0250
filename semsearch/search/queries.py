"""Queries: checked, and as vectors."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.analysis import parse_query
from semsearch.arguments import check_items, check_readable, shown
from semsearch.errors import (
    ArgumentError,
    CombinationError,
    DocumentNotFoundError,
    NoVectorError,
    QueryError,
)
from semsearch.protocols import Encoder, Matrix
from semsearch.records import SearchMode
from semsearch.search.options import Options
from semsearch.stores.protocol import StoreState
from semsearch.stores.space import Space
from semsearch.vectors import check_unit

#: What is searched for: a text, several texts at once, or a vector of the space's width.
Query: TypeAlias = str | Sequence[str] | Sequence[float] | NDArray[Any]

#: Below this length, a sum of examples is rounding errors.
MIN_NORM = 1e-4

logger = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """A query, checked: texts or a vector; neither where there are examples alone."""

    text: str  #: as it was asked
    to_encode: tuple[str, ...] = ()
    vector: Matrix | None = None
    words: str = ""  #: for BM25
    required: tuple[str, ...] = ()  #: phrases that documents must have
    excluded: tuple[str, ...] = ()  #: words and phrases that they must not have


def checked_queries(queries: Iterable[Query], space: Space, options: Options) -> list[Wanted]:
    """The queries, if they can be searched for.

    Raises:
        ArgumentError: one of them is empty or cannot be read, or is a vector of another width.
    """
    if isinstance(queries, str):
        raise ArgumentError("search_many takes a list of texts; for one text there is search")
    if isinstance(queries, numpy.ndarray):
        queries = list(queries)
    return [_checked(query, space, options) for query in check_items("queries", queries, "queries")]


def query_vectors(
    encoder: Encoder | None, queries: Sequence[Wanted], examples: Matrix | None
) -> Matrix:
    """The unit vector of each query, shape (len(queries), dimension).

    Args:
        encoder: of their texts; None where they have none.
        queries: a query of several texts, or with examples, is their sum.
        examples: what is added to each.

    Raises:
        NoVectorError: the encoder returns no vector for a text.
        ArgumentError: what is added up cancels itself out.
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
    """The sum of vectors, of unit length."""
    total = numpy.sum(parts, axis=0)
    length = numpy.linalg.norm(total)
    if not length > MIN_NORM:
        raise QueryError("the examples cancel each other out; give one of them more weight")
    found: Matrix = total / length
    return found


def example_vector(state: StoreState, space: Space, weights: Mapping[str, float]) -> Matrix:
    """The weighted sum of documents' vectors, each the mean of its passages', of unit length.

    Raises:
        ArgumentError: the index has no document of such an id.
    """
    found = state.document_vectors(space, list(weights))
    if missing := [name for name in weights if name not in found]:
        raise DocumentNotFoundError(f"no document '{missing[0]}' in this index")
    means = {name: vectors.mean(axis=0) for name, vectors in found.items()}
    total: Matrix = numpy.sum(
        [weights[name] * mean / numpy.linalg.norm(mean) for name, mean in means.items()], axis=0
    )
    return total


def _checked(query: Query, space: Space, options: Options) -> Wanted:
    texts: Sequence[object] = ()
    if isinstance(query, str):
        texts = [query]
    elif isinstance(query, (list, tuple)) and any(isinstance(item, str) for item in query):
        texts = query
    elif isinstance(query, (list, tuple)) and not query and options.examples:
        if options.mode is SearchMode.HYBRID or options.rerank is not None:
            raise CombinationError("examples alone have no words: mode must be 'semantic'")
        return Wanted("")
    else:
        return Wanted("", vector=_unit(query, space, options))
    read = [check_readable("the query", text) for text in texts]
    if options.mode is SearchMode.SEMANTIC:
        return Wanted(" ".join(read), tuple(read))
    parsed = [parse_query(text) for text in read]
    found = Wanted(
        " ".join(read),
        tuple(one.plain for one in parsed if one.plain),
        words=" ".join(one.words for one in parsed),
        required=tuple(phrase for one in parsed for phrase in one.required),
        excluded=tuple(phrase for one in parsed for phrase in one.excluded),
    )
    if not found.to_encode:
        raise QueryError("the query excludes words, and has none to look for")
    return found


def _unit(vector: Any, space: Space, options: Options) -> Matrix:
    """A vector of unit length, if it can be searched for."""
    if not isinstance(vector, (list, tuple, numpy.ndarray)):
        check_readable("the query", vector)
    if options.mode is not SearchMode.SEMANTIC or options.rerank is not None:
        raise CombinationError("a vector has no words: mode must be 'semantic', and rerank None")
    try:
        found = numpy.asarray(vector, numpy.float64)
    except (TypeError, ValueError):
        found = numpy.empty(0)
    if found.shape != (space.dimension,):
        raise QueryError(
            f"a vector for space '{space.name}' has {space.dimension} numbers, not {shown(vector)}"
        )
    length = numpy.linalg.norm(found)
    if not numpy.isfinite(length) or length == 0:
        raise QueryError("the query vector is zero, NaN or infinite")
    return (found / length).astype(numpy.float32)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    _warn_of_cut_queries(encoder, texts)
    try:
        return check_unit(encoder.encode_queries(texts), encoder.spec)
    except NoVectorError as error:
        query = texts[error.rows[0]]
        message = (
            f"encoder '{encoder.spec}' returns no vector (but NaN or zero) for the query "
            f"{shown(query)}; --mode bm25 needs none"
        )
        raise NoVectorError(encoder.spec, error.rows, message) from error


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
