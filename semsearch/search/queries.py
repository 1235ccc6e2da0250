"""Validates queries and search options, and encodes queries as vectors."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy
from numpy.typing import NDArray

from semsearch.arguments import (
    check_choice,
    check_items,
    check_number,
    check_readable,
    check_text,
    check_unordered,
    check_whole_number,
    shown,
)
from semsearch.errors import (
    ArgumentError,
    CombinationError,
    DocumentNotFoundError,
    NoVectorError,
    QueryError,
)
from semsearch.protocols import Encoder, Matrix, Reranker, checked_vectors
from semsearch.records import SearchMode
from semsearch.stores.protocol import Space, StoreState

logger = logging.getLogger(__name__)

#: The id of a document, several ids, or weights by id.
Examples: TypeAlias = str | Iterable[str] | Mapping[str, float]

#: The weight of the semantic ranking in fusion by default.
DENSE_WEIGHT = 0.5

#: How many documents a cross-encoder reads by default.
RERANK_DEPTH = 100

#: The weight of `unlike` documents in a query; texts and `like` documents have 1.
UNLIKE_WEIGHT = -0.5
#: Larger weights leave nothing of the other texts and documents.
MAX_WEIGHT = 1e6

#: Phrases that a message quotes.
PHRASES_SHOWN = 3


class Fusion(Enum):
    """How hybrid search fuses two rankings; see `semsearch.search.fusion`."""

    ZSCORES = "zscores"
    RRF = "rrf"


class SearchOptions(TypedDict, total=False):
    """Options of `search` and `search_many`, of an index or a retriever. All are optional.

    Attributes:
        offset: the number of best hits to skip, for pages after the first. An approximate index
            may find hits for a later page that an earlier one lacked, so that pages overlap.
        min_score: drop hits with a lower score; with `rerank`, also those that it did not read.
        where: a filter over metadata, such as ``year >= 1990 and genres = 'Drama'``.
        mode: ``semantic`` (the default), ``bm25`` or ``hybrid``: by meaning, by words, or both.
            In the latter two, ``"an exact phrase"`` ranks passages that contain it above others by
            BM25, and ``-word`` or ``-"a phrase"`` after a blank excludes documents with such a
            passage, if others are left.
        require: a phrase, or several, that some passage of the document must contain, as BM25 reads
            words.
        fusion: how hybrid search fuses both rankings: ``zscores`` (the default) or ``rrf``.
        dense_weight: the weight of the semantic ranking in fusion, from 0 to 1; 0.5 by default.
        like: ids of documents that hits should resemble, or weights by id. Their vectors are added
            to the query's (Rocchio 1971); they are not hits themselves.
        unlike: ids of documents that hits should not resemble; each has the weight -0.5.
        per_document: the maximum number of passages per document; 1 by default.
        fold_duplicates: drop hits whose passage is a near-duplicate of a better hit's (cosine of
            at least 0.95); their ids are in `Hit.duplicates` of that hit.
        mmr: reorder the first 100 hits by maximal marginal relevance (Carbonell & Goldstein 1998);
            the weight of relevance, from 0 (diversity only) to 1 (relevance only).
        rerank: a cross-encoder that scores the passages of the first documents again.
        rerank_depth: the maximum number of documents that it reads; 100 by default.
        rerank_budget: time limit in seconds. The best-ranked documents are read first, at least 8;
            those not read follow in their previous order, with their previous scores.
        explain: fill in `Hit.explanation` and `Hits.stages` (timings).
    """

    offset: int
    min_score: float | None
    where: str | None
    mode: SearchMode | str
    require: str | Sequence[str]
    fusion: Fusion | str
    dense_weight: float
    like: Examples
    unlike: Examples
    per_document: int
    fold_duplicates: bool
    mmr: float | None
    rerank: Reranker | None
    rerank_depth: int
    rerank_budget: float | None
    explain: bool


@dataclass(frozen=True)
class Options:
    """The validated options of a search; see `SearchOptions`.

    Raises:
        ArgumentError: an option has an invalid type or value.
    """

    k: int = 10
    offset: int = 0
    min_score: float | None = None
    where: str | None = None
    mode: SearchMode | str = SearchMode.SEMANTIC
    require: str | Sequence[str] = ()
    fusion: Fusion | str = Fusion.ZSCORES
    dense_weight: float = DENSE_WEIGHT
    like: Examples = ()
    unlike: Examples = ()
    per_document: int = 1
    fold_duplicates: bool = False
    mmr: float | None = None
    rerank: Reranker | None = None
    rerank_depth: int = RERANK_DEPTH
    rerank_budget: float | None = None
    explain: bool = False
    examples: Mapping[str, float] = field(init=False)  #: weights of `like` and `unlike`, by id

    def __post_init__(self) -> None:
        if self.where is not None:
            check_text("where", self.where)
        if self.rerank is not None and not callable(getattr(self.rerank, "score", None)):
            raise ArgumentError(
                f"rerank must be a reranker (load_reranker returns one), not {shown(self.rerank)}"
            )
        if self.min_score is not None:
            self._set("min_score", check_number("min_score", self.min_score))
        for name, least in (("k", 1), ("offset", 0), ("per_document", 1), ("rerank_depth", 1)):
            self._set(name, check_whole_number(name, getattr(self, name), least))
        self._set("mode", check_choice("mode", SearchMode, self.mode))
        required = [self.require] if isinstance(self.require, str) else self.require
        listed = check_items("require", required, "phrases")
        self._set("require", tuple(check_readable("the required phrase", one) for one in listed))
        self._set("fusion", check_choice("fusion", Fusion, self.fusion))
        self._set("dense_weight", check_number("dense_weight", self.dense_weight, 0, 1))
        for name, most in (("mmr", 1), ("rerank_budget", math.inf)):
            value = getattr(self, name)
            if value is not None:
                self._set(name, check_number(name, value, 0, most))
        for name in ("fold_duplicates", "explain"):
            value = getattr(self, name)
            if not isinstance(value, (bool, numpy.bool_)):
                raise ArgumentError(f"{name} must be True or False, not {shown(value)}")
        like, unlike = _weights(self.like), _weights(self.unlike)
        if both := like.keys() & unlike.keys():
            raise CombinationError(f"document '{min(both)}' is in both like and unlike")
        examples = like | {name: weight * UNLIKE_WEIGHT for name, weight in unlike.items()}
        self._set("examples", examples)
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Refuse options that would have no effect."""
        if self.examples and self.mode is SearchMode.BM25:
            raise CombinationError(
                "like and unlike compare vectors: mode must be semantic or hybrid"
            )
        is_fused = self.fusion is not Fusion.ZSCORES or self.dense_weight != DENSE_WEIGHT
        if is_fused and self.mode is not SearchMode.HYBRID:
            raise CombinationError("fusion and dense_weight need mode 'hybrid'")
        is_limited = self.rerank_depth != RERANK_DEPTH or self.rerank_budget is not None
        if is_limited and self.rerank is None:
            raise CombinationError("rerank_depth and rerank_budget need rerank")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def _weights(examples: Examples) -> dict[str, float]:
    """The weights of documents, by id.

    Raises:
        ArgumentError: an id is not a string, or a weight is not a number.
    """
    if isinstance(examples, Mapping):
        weights: dict[str, Any] = dict(examples)
    else:
        ids = [examples] if isinstance(examples, str) else check_unordered("examples", examples)
        weights = dict.fromkeys(ids, 1.0)
    for name, weight in weights.items():
        check_text("the id of an example", name)
        weights[name] = check_number(f"the weight of '{name}'", weight, -MAX_WEIGHT, MAX_WEIGHT)
    return weights


#: A query: a text, several texts whose vectors are added, or a vector of the space's dimension.
Query: TypeAlias = str | Sequence[str] | Sequence[float] | NDArray[Any]

#: Shorter sums of vectors are rounding errors.
MIN_NORM = 1e-4


class Wanted(NamedTuple):
    """A validated query: texts or a vector; neither if it has only examples."""

    text: str  #: of the query, for results
    to_encode: tuple[str, ...] = ()
    vector: Matrix | None = None
    words: str = ""  #: for BM25
    phrases: tuple[str, ...] = ()  #: passages that contain them rank above others
    excluded: tuple[str, ...] = ()  #: words and phrases that no passage of a document may contain


def checked_queries(queries: Iterable[Query], space: Space, options: Options) -> list[Wanted]:
    """Validate queries.

    Raises:
        ArgumentError: a query is empty, not Unicode, or a vector of the wrong dimension.
    """
    if isinstance(queries, str):
        raise ArgumentError("search_many takes a list of texts; use search for one text")
    if isinstance(queries, numpy.ndarray):
        queries = list(queries)
    return [_checked(query, space, options) for query in check_items("queries", queries, "queries")]


def log_operators(queries: Sequence[Wanted], searched: Sequence[Wanted]) -> None:
    """Log a warning that says which operators were read.

    Args:
        queries: with all operators.
        searched: the same queries, without exclusions that would have left no hits.
    """
    count = sum(1 for query in queries if query.phrases or query.excluded)
    if count and len(queries) > 1:
        logger.warning(
            "quotes or minus signs are operators in %s of %s queries",
            f"{count:,}",
            f"{len(queries):,}",
        )
    elif count:
        (query,), (used,) = queries, searched
        effects = []
        if query.phrases:
            effects.append(f"passages with {_enumerated(query.phrases)} rank higher")
        if query.excluded:
            effect = "are excluded" if used.excluded else "are not: no hits would be left"
            effects.append(f"documents with {_enumerated(query.excluded)} {effect}")
        logger.warning("operators in the query: %s", "; ".join(effects))


def _enumerated(phrases: Sequence[str]) -> str:
    return ", ".join(map(shown, phrases[:PHRASES_SHOWN])) + ", …" * (len(phrases) > PHRASES_SHOWN)


def query_vectors(
    encoder: Encoder | None, queries: Sequence[Wanted], examples: Matrix | None
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
        raise QueryError("the examples cancel each other out; give one of them more weight")
    found: Matrix = total / length
    return found


def example_vector(state: StoreState, space: Space, weights: Mapping[str, float]) -> Matrix:
    """The weighted sum of document vectors: of each, the normalised mean of its passages.

    Raises:
        ArgumentError: the index has no document with such an id.
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
            raise CombinationError(
                "examples have no words to search for: mode must be 'semantic', and rerank None"
            )
        return Wanted("")
    else:
        return Wanted("", vector=_unit(query, space, options))
    read = [check_readable("the query", text) for text in texts]
    if options.mode is SearchMode.SEMANTIC:
        return Wanted(" ".join(read), tuple(read))
    from semsearch.analysis import parse_query  # only for BM25

    parsed = [parse_query(text) for text in read]
    words = tuple(one.words for one in parsed)
    return Wanted(
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
        raise CombinationError("a vector has no words: mode must be 'semantic', and rerank None")
    try:
        found = numpy.asarray(vector, numpy.float64)
    except (TypeError, ValueError, OverflowError):
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
        return checked_vectors(encoder.encode_queries(texts), encoder, len(texts))
    except NoVectorError as error:
        query = texts[error.rows[0]]
        message = (
            f"encoder '{encoder.spec}' returns no unit vector (NaN, zero or not normalised) for "
            f"the query {shown(query)}; --mode bm25 needs none"
        )
        raise NoVectorError(encoder.spec, error.rows, message) from error


def _warn_of_cut_queries(encoder: Encoder, texts: Sequence[str]) -> None:
    """Log a warning for each query that is longer than the encoder's limit."""
    limit = encoder.max_query_tokens
    if limit is None:
        return
    for text in texts:
        # A token is at least a byte, so shorter queries need not be tokenised.
        if len(text) > limit // 4 and len(text.encode()) > limit:
            tokens = encoder.token_spans(text)
            if len(tokens) > limit:
                rest = text[tokens[limit][0] :]
                logger.warning(
                    "the query has %d tokens; %s reads only the first %d, without: %s",
                    len(tokens),
                    encoder.spec,
                    limit,
                    shown(rest),
                )
