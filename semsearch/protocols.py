"""Public interfaces (protocols): encoders, rerankers and whatever can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy
from numpy.typing import NDArray

from semsearch.errors import NoVectorError
from semsearch.records import Coverage, Hits

#: Vectors as rows: float32, shape (n, dimension), each row of unit length.
Matrix = NDArray[numpy.float32]

#: Scores, higher is better: float32, shape (n,).
Scores = NDArray[numpy.float32]

#: The tokens of one text as character ranges [start, end): integers, shape (n, 2).
TokenSpans = NDArray[numpy.int64]


@runtime_checkable
class Encoder(Protocol):
    """A bi-encoder: it turns texts into unit vectors whose inner product is their cosine."""

    @property
    def spec(self) -> str:
        """What was asked for (``minilm``, a hub name, a folder); loads the same encoder again."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides its vectors: weights, tokenizer, pooling, prompts."""

    @property
    def dimension(self) -> int:
        """Width of its vectors."""

    @property
    def max_document_tokens(self) -> int:
        """How many tokens of a document it reads, besides its prompt and special tokens."""

    @property
    def max_query_tokens(self) -> int | None:
        """How many tokens of a query it reads, besides its prompt and special tokens.

        None where it reads all of any query.
        """

    def description(self) -> Mapping[str, Any]:
        """What a person wants to know of it, as JSON values."""

    def token_spans(self, text: str) -> TokenSpans:
        """Where the tokens of a text stand, special tokens left out, nothing cut off."""

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries, float32, shape (len(texts), dimension)."""

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of passages, float32, shape (len(texts), dimension)."""

    def encode(
        self, sentences: str | Sequence[str], prompt_name: str | None = None, **options: Any
    ) -> Any:
        """Unit vectors of sentences, as a SentenceTransformer returns them.

        `semsearch.encoders.EncodesSentences` is a base class with this method and its options.
        """


@runtime_checkable
class CountsWords(Protocol):
    """What an encoder offers besides if it leaves out words that it does not know."""

    def coverage(self) -> Coverage:
        """The words of all documents that it has encoded."""


@runtime_checkable
class KnowsWords(Protocol):
    """What an encoder of words may offer besides: whether a word is in its vocabulary."""

    def knows(self, word: str) -> bool:
        """Whether it has a vector of this word's own."""


class Reranker(Protocol):
    """A cross-encoder: it reads a query and a passage together."""

    @property
    def spec(self) -> str:
        """What was asked for; loads the same one again."""

    @property
    def precision(self) -> str | None:
        """In which numbers it computes (``fp32``, ``bf16``); None where there is no choice."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """One score a passage, higher is better, shape (len(passages),)."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair of texts, higher is better, shape (len(pairs),)."""


class SearchBackend(Protocol):
    """Anything that can be searched: the local index, or a store elsewhere."""

    def search_many(
        self, queries: Sequence[str], k: int = 10, *, where: str | None = None
    ) -> list[Hits]:
        """The best `k` documents for each query, in their order."""


#: How far from 1 the norm of a unit vector may be: float16 keeps three digits.
NORM_TOLERANCE = 2e-3


def off_unit(matrix: Matrix) -> NDArray[numpy.bool]:
    """Which rows are not of unit length: NaN, infinite, zero or not normalised.

    Args:
        matrix: shape (n, dimension).

    Returns:
        Shape (n,).
    """
    with numpy.errstate(over="ignore", invalid="ignore"):
        norms = numpy.linalg.norm(matrix, axis=1)
    unit: NDArray[numpy.bool] = abs(norms - 1) <= NORM_TOLERANCE
    return ~unit  # NaN is off, too


def check_unit(matrix: Matrix, spec: str) -> Matrix:
    """The matrix, if all its rows are unit vectors.

    Args:
        matrix: what the encoder of that spec returned, shape (n, dimension).
        spec: named in the message.

    Raises:
        NoVectorError: some rows are not.
    """
    rows = numpy.flatnonzero(off_unit(matrix)).tolist()
    if rows:
        raise NoVectorError(spec, rows)
    return matrix


def encode_usable(encoder: Encoder, texts: Sequence[str]) -> tuple[Matrix, list[int]]:
    """The vectors of the texts that have one.

    Args:
        encoder: any, ours or a user's.
        texts: documents.

    Returns:
        Unit vectors, shape (m, dimension), and the m places of their texts in `texts`.
    """
    places = list(range(len(texts)))
    while places:
        try:
            matrix = encoder.encode_documents([texts[place] for place in places])
            return check_unit(matrix, encoder.spec), places
        except NoVectorError as error:
            if not error.rows:
                raise
            places = [place for row, place in enumerate(places) if row not in error.rows]
    return numpy.empty((0, encoder.dimension), numpy.float32), []
