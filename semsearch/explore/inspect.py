"""Shows the tokens that an encoder reads, and their vectors.

In a transformer, the vector of a token depends on its context: the `get` of "get scared" is not
that of "get the drinks". In other encoders, a word always has the same vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders import load_encoder
from semsearch.encoders.base import KnowsWords
from semsearch.encoders.torch_models import TorchEncoder, cutting_tokenizer
from semsearch.errors import ArgumentError, EncoderError
from semsearch.protocols import Encoder, Matrix
from semsearch.search.options import check_readable

if TYPE_CHECKING:
    from tokenizers import Encoding


#: float32, shape (dimension,).
Vector = NDArray[numpy.float32]


class TokenKind(Enum):
    """The origin of a token."""

    TEXT = "text"
    PROMPT = "prompt"
    SPECIAL = "special"


class Token(NamedTuple):
    """A token that an encoder reads."""

    piece: str  #: its name in the vocabulary; for word encoders, the word itself
    id: int | None  #: its number in the vocabulary; None if the encoder has no numbers
    kind: TokenKind
    start: int  #: its first character in the text
    end: int  #: the character after its last one; `start` for tokens outside the text
    known: bool | None  #: whether it is in the vocabulary; None if the encoder has none
    #: Of its vector with the sentence vector; None if these cannot be compared (an unknown word,
    #: different dimensions).
    cosine: float | None


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


def inspect_text(spec: str, text: str) -> Inspection:
    """Inspect how an encoder processes a text.

    Args:
        spec: the encoder, as in `load_encoder`.
        text: read as a document, with the model's prompt for documents.

    Raises:
        ArgumentError: the text is empty or not Unicode.
        EncoderError: the encoder does not exist, or has no token vectors.
    """
    (inspection,) = _inspected(spec, text)
    return inspection


def token_similarity(spec: str, left: str, right: str) -> TokenSimilarity:
    """The cosines of all tokens of one text with all tokens of another.

    Args:
        spec: the encoder, as in `load_encoder`.
        left: the text whose tokens are the rows.
        right: the text whose tokens are the columns.

    Raises:
        ArgumentError: a text is empty, has no words, or is not Unicode.
        EncoderError: the encoder does not exist, or has no token vectors.
    """
    rows, columns = _inspected(spec, left, right)
    for side in (rows, columns):
        if not side.tokens:
            raise ArgumentError(f"encoder '{side.spec}' finds no words in {side.text[:50]!r}")
    cosines = _normalised(rows.token_vectors) @ _normalised(columns.token_vectors).T
    return TokenSimilarity(rows, columns, cosines)


def _inspected(spec: str, *texts: str) -> list[Inspection]:
    for text in texts:
        check_readable("the text", text)
    # Torch, because the converted model returns only pooled vectors.
    encoder = load_encoder(spec, device="cpu", precision="fp32")
    if isinstance(encoder, TorchEncoder):
        return [_read_by_transformer(encoder, text) for text in texts]
    return [_read_by_words(encoder, text) for text in texts]


def _read_by_transformer(encoder: TorchEncoder, text: str) -> Inspection:
    """Inspect a text, read as a document with the model's prompt for documents.

    Raises:
        EncoderError: the model is not a transformer, or restricted to some dimensions.
    """
    encoder.folder.check_whole()
    model = encoder.model
    if model.transformers_model is None:  # averaged word vectors
        raise EncoderError(f"model '{encoder.spec}' is not a transformer; inspect one like minilm")
    prompt = model.prompts.get("document") or ""
    encoding = cutting_tokenizer(model).encode(prompt + text)
    features: dict[str, Any] = model.encode(
        text, prompt=prompt, output_value=None, show_progress_bar=False
    )
    vectors: Matrix = features["token_embeddings"].numpy()
    sentence: Vector = _normalised(features["sentence_embedding"].numpy()[None])[0]
    cosines: list[float | None] = [None] * len(vectors)
    if vectors.shape[1] == len(sentence):
        cosines = (_normalised(vectors) @ sentence).tolist()
    kinds = _kinds(encoding, len(prompt))
    tokens = []
    for piece, number, kind, (start, end), cosine in zip(
        encoding.tokens, encoding.ids, kinds, encoding.offsets, cosines, strict=True
    ):
        known = number != model.tokenizer.unk_token_id
        start, end = max(start - len(prompt), 0), max(end - len(prompt), 0)
        tokens.append(Token(piece, number, kind, start, end, known, cosine))
    parts = [kinds, *(_kinds(part, len(prompt)) for part in encoding.overflowing)]
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tuple(tokens),
        text_tokens=sum(part.count(TokenKind.TEXT) for part in parts),
        read_to=max(token.end for token in tokens) if encoding.overflowing else len(text),
        max_tokens=encoder.max_document_tokens,
        pooling=_pooling(model),
        vector=sentence,
        token_vectors=vectors,
    )


def _kinds(encoding: Encoding, prompt_length: int) -> list[TokenKind]:
    kinds = []
    for is_special, (_, end) in zip(encoding.special_tokens_mask, encoding.offsets, strict=True):
        if is_special:
            kinds.append(TokenKind.SPECIAL)
        else:
            kinds.append(TokenKind.PROMPT if end <= prompt_length > 0 else TokenKind.TEXT)
    return kinds


def _pooling(model: Any) -> str | None:
    """The pooling modes of a model."""
    for module in model:
        modes = getattr(module, "pooling_mode", None)
        if modes is not None:
            return modes if isinstance(modes, str) else "+".join(modes)
    return None


def _read_by_words(encoder: Encoder, text: str) -> Inspection:
    """Inspect a text, and each of its words by itself; the text is never truncated."""
    sentence = encoder.encode_documents([text])[0]
    tokens, vectors = [], []
    for start, end in encoder.token_spans(text).tolist():
        word, cosine = text[start:end], None
        known = encoder.knows(word) if isinstance(encoder, KnowsWords) else None
        vector = numpy.full(encoder.dimension, numpy.nan, numpy.float32)
        if known is not False:
            vector = encoder.encode_documents([word])[0]
            cosine = float(vector @ sentence)
        tokens.append(Token(word, None, TokenKind.TEXT, start, end, known, cosine))
        vectors.append(vector)
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tuple(tokens),
        text_tokens=len(tokens),
        read_to=len(text),
        vector=sentence,
        token_vectors=numpy.array(vectors).reshape(-1, encoder.dimension),
    )


def _normalised(vectors: Matrix) -> Matrix:
    """The rows scaled to unit length, shape (n, width); NaN stays NaN."""
    unit: Matrix = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
