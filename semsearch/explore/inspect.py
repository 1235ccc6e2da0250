"""Shows the tokens that an encoder reads, their vectors, and how these are pooled.

In a transformer, the vector of a token depends on its context: the `get` of "get scared" is not
that of "get the drinks". In other encoders, a word always has the same vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders import load_encoder
from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import ArgumentError, EncoderError, check_readable
from semsearch.protocols import Encoder, KnowsWords, Matrix

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


def inspect_text(spec: str, text: str) -> Inspection:
    """Inspect how an encoder processes a text.

    Args:
        spec: the encoder, as in `load_encoder`.
        text: read as a document, with the model's prompt for documents.

    Raises:
        ArgumentError: the text is empty or not Unicode.
        EncoderError: the encoder does not exist, or has no token vectors.
    """
    check_readable("the text", text)
    return _opened(spec)(text)


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
    check_readable("the text", left)
    check_readable("the text", right)
    read = _opened(spec)
    rows, columns = read(left), read(right)
    for side in (rows, columns):
        if not side.tokens:
            raise ArgumentError(f"encoder '{side.spec}' finds no words in {side.text[:50]!r}")
    cosines = normalised(rows.token_vectors) @ normalised(columns.token_vectors).T
    return TokenSimilarity(rows, columns, cosines)


def _opened(spec: str) -> Callable[[str], Inspection]:
    """Load an encoder; returns a function that inspects texts."""
    if spec == "bm25" or spec.startswith("cross-encoder:"):
        raise EncoderError(f"{spec} has scores, not vectors; inspect an encoder such as minilm")
    # Torch, because the converted model returns only pooled vectors.
    encoder = load_encoder(spec, device="cpu", precision="fp32")
    if isinstance(encoder, TorchEncoder):
        encoder.folder.check_whole()
        return partial(_read_by_transformer, encoder)
    return partial(_read_by_words, encoder)


def _read_by_transformer(encoder: TorchEncoder, text: str) -> Inspection:
    """Inspect a text, read as a document with the model's prompt for documents.

    Raises:
        EncoderError: the model is not a transformer, or finds no tokens in the text.
    """
    model = encoder.model
    if model.transformers_model is None:  # averaged word vectors
        raise EncoderError(f"model '{encoder.spec}' is not a transformer; inspect one like minilm")
    prompt = model.prompts.get("document") or ""
    tokenizer = whole_text_tokenizer(encoder.model.tokenizer)
    tokenizer.enable_truncation(model.get_max_seq_length())
    encoding = tokenizer.encode(prompt + text)
    kinds = _kinds(encoding, len(prompt))
    vectors, sentence, norm = _forward(encoder, encoding, kinds)
    units = normalised(numpy.concatenate([vectors, vectors.mean(axis=0, keepdims=True)]))
    cosines: list[float | None] = [None] * len(units)
    if units.shape[1] == len(sentence):
        cosines = (units @ sentence).tolist()
    offsets = numpy.maximum(numpy.array(encoding.offsets) - len(prompt), 0).tolist()
    unknown_id = model.tokenizer.unk_token_id
    known = [number != unknown_id for number in encoding.ids]
    masks, starts, ends = encoding.attention_mask, *zip(*offsets, strict=True)
    columns = encoding.tokens, encoding.ids, kinds, masks, starts, ends, known, cosines[:-1]
    parts = [kinds, *(_kinds(part, len(prompt)) for part in encoding.overflowing)]
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tuple(map(Token._make, zip(*columns, strict=True))),
        text_tokens=sum(part.count(TokenKind.TEXT) for part in parts),
        read_to=max(ends) if encoding.overflowing else len(text),
        max_tokens=encoder.max_document_tokens,
        pooling=_pooling(model),
        norm=norm,
        vector=sentence,
        token_vectors=vectors,
        poolings=PoolingCosines(float(units[0] @ units[-1]), cosines[0], cosines[-1]),
    )


def _kinds(encoding: Encoding, prompt_length: int) -> list[TokenKind]:
    kinds = []
    for is_special, (_, end) in zip(encoding.special_tokens_mask, encoding.offsets, strict=True):
        if is_special:
            kinds.append(TokenKind.SPECIAL)
        else:
            kinds.append(TokenKind.PROMPT if end <= prompt_length > 0 else TokenKind.TEXT)
    return kinds


def _forward(
    encoder: TorchEncoder, encoding: Encoding, kinds: list[TokenKind]
) -> tuple[Matrix, Vector, float]:
    """Run the modules of a model one after another.

    Returns:
        Token vectors, the unit sentence vector, and its length before normalisation.
    """
    import torch

    if not encoding.ids:
        raise EncoderError(f"model '{encoder.spec}' finds no tokens in this text")
    model = encoder.model
    inputs = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
    }
    features: dict[str, Any] = {
        name: torch.tensor([numbers], device=model.device)
        for name, numbers in inputs.items()
        if name in model.tokenizer.model_input_names
    }
    if TokenKind.PROMPT in kinds:  # for poolings that exclude the prompt
        features["prompt_length"] = len(kinds) - kinds[::-1].index(TokenKind.PROMPT)
    norm = 0.0
    with torch.inference_mode():
        for module in model:
            features = module(features)
            if "sentence_embedding" in features and type(module).__name__ != "Normalize":
                norm = float(features["sentence_embedding"].norm())
    if "token_embeddings" not in features:
        raise EncoderError(f"model '{encoder.spec}' has no token vectors")
    if not norm > 0:  # NaN fails this too
        raise EncoderError(f"model '{encoder.spec}' returned a vector of zeros or NaN")
    tokens = features["token_embeddings"][0].float().cpu().numpy()
    sentence = features["sentence_embedding"].float().cpu().numpy()
    return tokens, normalised(sentence)[0], norm


def _pooling(model: Any) -> str | None:
    """The pooling modes of a model."""
    for module in model:
        modes = getattr(module, "pooling_mode", None)
        if modes is not None:
            return modes if isinstance(modes, str) else "+".join(modes)
    return None


def _read_by_words(encoder: Encoder, text: str) -> Inspection:
    """Inspect a text, and each of its words by itself; the text is never truncated."""
    spans = encoder.token_spans(text).tolist()
    words = [text[start:end] for start, end in spans]
    distinct = dict.fromkeys(words)
    known = {
        word: encoder.knows(word) if isinstance(encoder, KnowsWords) else None for word in distinct
    }
    encoded = [word for word in distinct if known[word] is not False]
    positions = {word: row for row, word in enumerate(encoded)}
    sentence = encoder.encode_documents([text])[0]
    rows = encoder.encode_documents(encoded)
    missing = numpy.full((1, encoder.dimension), numpy.nan, numpy.float32)
    vectors = numpy.concatenate([rows, missing])[[positions.get(word, -1) for word in words]]
    tokens = []
    for word, (start, end), found in zip(words, spans, vectors @ sentence, strict=True):
        cosine = float(found) if word in positions else None
        tokens.append(Token(word, None, TokenKind.TEXT, 1, start, end, known[word], cosine))
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tuple(tokens),
        text_tokens=len(words),
        read_to=len(text),
        vector=sentence,
        token_vectors=vectors,
    )


def normalised(vectors: Matrix) -> Matrix:
    """The rows scaled to unit length, shape (n, width); NaN stays NaN."""
    unit: Matrix = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
