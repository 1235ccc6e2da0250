"""Data types of inspections."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Matrix

#: float32, shape (dimension,).
Vector = NDArray[numpy.float32]


class TokenKind(Enum):
    """The origin of a token."""

    TEXT = "text"
    PROMPT = "prompt"
    SPECIAL = "special"


class Token(NamedTuple):
    """A token that an encoder reads.

    Attributes:
        piece: its name in the vocabulary; for word encoders, the word itself.
        id: its number in the vocabulary; None if the encoder has no numbers.
        kind: whether it is part of the text, of the model's prompt, or a special token.
        attention: 1 if the encoder attends to it.
        start: its first character in the text.
        end: the character after its last one; `start` for tokens outside the text.
        known: whether it is in the vocabulary; None if the encoder has no vocabulary.
        cosine: of its vector with the sentence vector; None if these cannot be compared (an
            unknown word, different dimensions).
    """

    piece: str
    id: int | None
    kind: TokenKind
    attention: int
    start: int
    end: int
    known: bool | None
    cosine: float | None


class PoolingCosines(NamedTuple):
    """The cosines between common poolings of one text.

    Attributes:
        first_mean: the vector of the first token ([CLS]) with the mean of all.
        first_sentence: the vector of the first token with the sentence vector; None if their
            dimensions differ.
        mean_sentence: the mean with the sentence vector; None if their dimensions differ.
    """

    first_mean: float
    first_sentence: float | None
    mean_sentence: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Inspection:
    """How an encoder processes one text.

    Attributes:
        spec: the encoder.
        text: the text.
        tokens: the tokens read, in order, with special tokens and prompt.
        text_tokens: the number of tokens of the whole text, without special ones.
        read_to: the number of characters read before truncation.
        vector: the sentence vector, unit length, shape (dimension,).
        token_vectors: of any length, shape (len(tokens), width); NaN for unknown words.
        max_tokens: the maximum number of tokens, without special ones; None if unlimited.
        pooling: how token vectors are pooled; None if unknown.
        norm: the length of the sentence vector before normalisation; None if unknown.
        poolings: [CLS] against mean pooling; only for transformers.
    """

    spec: str
    text: str
    tokens: tuple[Token, ...]
    text_tokens: int
    read_to: int
    vector: Vector
    token_vectors: Matrix
    max_tokens: int | None = None
    pooling: str | None = None
    norm: float | None = None
    poolings: PoolingCosines | None = None

    @property
    def cut_off(self) -> str:
        """The part of the text that was truncated."""
        return self.text[self.read_to :]


@dataclass(frozen=True, eq=False)
class TokenSimilarity:
    """Two texts, token by token.

    Attributes:
        left: the text whose tokens are the rows.
        right: the text whose tokens are the columns.
        cosines: shape (len(left.tokens), len(right.tokens)); NaN for unknown words.
    """

    left: Inspection
    right: Inspection
    cosines: Matrix

    @property
    def sentence_cosine(self) -> float:
        """The cosine of the two sentence vectors."""
        return float(self.left.vector @ self.right.vector)

    def shared(self) -> list[tuple[str, float]]:
        """The known pieces in both texts, with the cosine of their first occurrences."""
        rows, columns = _first_positions(self.left), _first_positions(self.right)
        both = [piece for piece in rows if piece in columns]
        return [(piece, float(self.cosines[rows[piece], columns[piece]])) for piece in both]


def _first_positions(side: Inspection) -> dict[str, int]:
    positions: dict[str, int] = {}
    for position, token in enumerate(side.tokens):
        if token.kind is TokenKind.TEXT and token.known is not False:
            positions.setdefault(token.piece, position)
    return positions


def normalised(vectors: Matrix) -> Matrix:
    """The rows scaled to unit length, shape (n, width); NaN stays NaN."""
    unit: Matrix = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
