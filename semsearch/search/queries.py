"""Parses queries, and encodes them as vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError, DocumentNotFoundError, NoVectorError, check_items, shown
from semsearch.protocols import Encoder, Matrix, checked_vectors
from semsearch.records import SearchMode
from semsearch.search.options import Options, check_readable
from semsearch.storage.interface import Reader, unit_vectors
from semsearch.storage.spaces import Space

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
    return [_parsed(query, space, options) for query in check_items("queries", queries, "queries")]


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
    texts: Any = [query] if isinstance(query, str) else query
    is_list = isinstance(texts, (list, tuple))
    if not is_list or not any(isinstance(text, str) for text in texts):
        if options.mode is not SearchMode.SEMANTIC or options.rerank is not None:
            raise ArgumentError(
                "vectors and examples have no words: mode must be 'semantic', and rerank None"
            )
        has_only_examples = is_list and not texts and options.examples
        return ParsedQuery("", vector=None if has_only_examples else _unit(texts, space))
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


def _unit(vector: Any, space: Space) -> Matrix:
    """Validate a query vector, and normalise it."""
    try:
        found = numpy.asarray(vector, numpy.float64)
    except (TypeError, ValueError, OverflowError):
        found = numpy.empty(0)
    if found.shape != (space.dimension,):
        raise ArgumentError(
            f"a vector for space '{space.name}' has {space.dimension} numbers, not {shown(vector)}"
        )
    length = numpy.linalg.norm(found)
    if not 0 < length < numpy.inf:
        raise ArgumentError("the query vector is zero, NaN or infinite")
    return (found / length).astype(numpy.float32)


def _encoded(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    try:
        return checked_vectors(encoder.encode_queries(texts), encoder, len(texts))
    except NoVectorError as error:
        query = shown(texts[error.rows[0]])
        raise NoVectorError(f"no vector for the query {query}: {error}", error.rows) from error
