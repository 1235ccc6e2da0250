"""Public interfaces (protocols): encoders and rerankers; checks of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy
from numpy.typing import NDArray

from semsearch.errors import EncoderError, NoVectorError

#: Vectors as rows: float32, shape (n, dimension), each row of unit length.
Matrix = NDArray[numpy.float32]

#: Scores, higher is better: float32, shape (n,).
Scores = NDArray[numpy.float32]

#: The tokens of one text as character ranges [start, end): integers, shape (n, 2).
TokenSpans = NDArray[numpy.int64]


@runtime_checkable
class Encoder(Protocol):
    """A bi-encoder: it encodes texts as unit vectors, whose inner product is their cosine.

    >>> from semsearch import Encoder, load_encoder
    >>> isinstance(load_encoder("hashing"), Encoder)
    True
    """

    @property
    def spec(self) -> str:
        """The spec that loads the same encoder again (``minilm``, a hub name, a folder)."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that determines its vectors: weights, tokenizer, pooling, prompts."""

    @property
    def dimension(self) -> int:
        """The dimension of its vectors."""

    @property
    def max_document_tokens(self) -> int:
        """The maximum number of tokens of a document, without prompt and special tokens."""

    def description(self) -> Mapping[str, Any]:
        """A description for users, as JSON values."""

    def token_spans(self, text: str) -> TokenSpans:
        """The character ranges of all tokens of a text, without special tokens."""

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries, float32, shape (len(texts), dimension)."""

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of passages, float32, shape (len(texts), dimension)."""

    def encode(
        self, sentences: str | Sequence[str], prompt_name: str | None = None, **options: Any
    ) -> Any:
        """Unit vectors of sentences, like the method of SentenceTransformer.

        `semsearch.encoders.EncodesSentences` is a base class with this method and its options.
        """


class Reranker(Protocol):
    """A cross-encoder: it scores a query and a passage together.

    >>> from semsearch import Reranker, load_reranker
    >>> reranker: Reranker = load_reranker("my-reranker")
    >>> reranker.score_pairs([("a cat", "The cat dozed.")]).shape
    (1,)
    """

    @property
    def spec(self) -> str:
        """The spec that loads the same reranker again."""

    @property
    def precision(self) -> str | None:
        """Its precision (``fp32``, ``bf16``); None if there is no choice."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """One score per passage, higher is better, shape (len(passages),)."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score per pair of texts, higher is better, shape (len(pairs),)."""


#: The tolerated deviation of a unit vector's norm from 1; float16 has three digits.
NORM_TOLERANCE = 2e-3


def off_unit(matrix: Matrix) -> NDArray[numpy.bool]:
    """Find rows that are not of unit length: NaN, infinite, zero or not normalised; shape (n,)."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        norms = numpy.linalg.norm(matrix, axis=1)
    unit: NDArray[numpy.bool] = abs(norms - 1) <= NORM_TOLERANCE
    return ~unit  # NaN is off, too


def check_unit(matrix: Matrix, spec: str) -> Matrix:
    """The vectors of an encoder, shape (n, dimension), if all are unit vectors.

    Raises:
        NoVectorError: some are not.
    """
    rows = numpy.flatnonzero(off_unit(matrix)).tolist()
    if rows:
        reason = "returns no unit vector (NaN, zero or not normalised)"
        place = f"text {rows[0] + 1} of those encoded together"
        raise NoVectorError(f"encoder '{spec}' {reason} for {place}", rows)
    return matrix


def checked_vectors(vectors: Any, encoder: Encoder, count: int) -> Matrix:
    """The vectors that an encoder returned for `count` texts, shape (count, dimension).

    Raises:
        EncoderError: it returned another number of vectors, or of another dimension.
        NoVectorError: some rows are not unit vectors.
    """
    found = numpy.asarray(vectors, numpy.float32)
    if found.shape != (count, encoder.dimension):
        wanted = f"not {(count, encoder.dimension)}"
        raise EncoderError(f"encoder '{encoder.spec}' returned shape {found.shape}, {wanted}")
    return check_unit(found, encoder.spec)


def encode_usable(encoder: Encoder, texts: Sequence[str]) -> tuple[Matrix, list[int]]:
    """The vectors of documents, and their positions in `texts`; others have no vector.

    Raises:
        EncoderError: the encoder returned something else than a vector for each text.
    """
    places = list(range(len(texts)))
    while places:
        try:
            matrix = encoder.encode_documents([texts[place] for place in places])
            vectors = checked_vectors(matrix, encoder, len(places))
            return vectors.copy(), places  # the encoder may reuse its array for the next texts
        except NoVectorError as error:
            if not error.rows:
                raise
            places = [place for row, place in enumerate(places) if row not in error.rows]
    return numpy.empty((0, encoder.dimension), numpy.float32), []
