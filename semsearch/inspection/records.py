"""What is found in an opened encoder."""

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
    """Where a token comes from."""

    TEXT = "text"
    PROMPT = "prompt"
    SPECIAL = "special"


class Token(NamedTuple):
    """A token that an encoder reads.

    Attributes:
        piece: its name in the vocabulary; for encoders of words, the word as it is written.
        id: its number in the vocabulary; None where there are no numbers.
        kind: whether it stands in the text, in the model's prompt, or in neither.
        attention: 1 where the encoder looks at it.
        start: where it begins in the text, in characters.
        end: where it ends; `start` for what does not stand in the text.
        known: whether the vocabulary has it; None where the encoder does not tell.
        cosine: of its vector with the sentence vector; None where these cannot be compared (an
            unknown word, another width).
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
    """How alike the usual poolings of one text are.

    Attributes:
        first_mean: the first token's vector ([CLS]) with the mean of all.
        first_sentence: the first token's vector with the sentence vector; None where their widths
            differ.
        mean_sentence: the mean with the sentence vector; None where their widths differ.
    """

    first_mean: float
    first_sentence: float | None
    mean_sentence: float | None


@dataclass(frozen=True, eq=False)
class Inspection:
    """What an encoder makes of one text.

    Attributes:
        spec: the encoder.
        text: the text.
        tokens: what the encoder reads, in order, with special tokens and prompt.
        text_tokens: how many tokens the whole text has, special ones not counted.
        read_to: up to where the text is read, in characters.
        max_tokens: how many tokens of a text are read at most, special ones not counted; None
            for any number.
        pooling: how token vectors become one; None where the encoder does not tell.
        norm: length of the sentence vector before normalisation; None where it is not to be had.
        vector: the sentence vector, unit length, shape (dimension,).
        token_vectors: of any length, shape (len(tokens), width); NaN for unknown words.
        poolings: [CLS] against mean pooling; only of transformers.
    """

    spec: str
    text: str
    tokens: tuple[Token, ...]
    text_tokens: int
    read_to: int
    max_tokens: int | None
    pooling: str | None
    norm: float | None
    vector: Vector
    token_vectors: Matrix
    poolings: PoolingCosines | None

    @property
    def cut_off(self) -> str:
        """The part of the text that is not read."""
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
        """The known pieces that stand in both texts, with the cosine of their first occurrences."""
        rows, columns = _first_places(self.left), _first_places(self.right)
        both = [piece for piece in rows if piece in columns]
        return [(piece, float(self.cosines[rows[piece], columns[piece]])) for piece in both]


def _first_places(side: Inspection) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, token in enumerate(side.tokens):
        if token.kind is TokenKind.TEXT and token.known is not False:
            places.setdefault(token.piece, place)
    return places


def unit_rows(vectors: Matrix) -> Matrix:
    """The rows at unit length, shape (n, width); NaN stays NaN."""
    unit: Matrix = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
