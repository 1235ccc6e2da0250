"""Shows the tokens that an encoder reads, their vectors, and how these are pooled.

In a transformer, the vector of a token depends on its context: the `get` of "get scared" is not
that of "get the drinks". In other encoders, a word always has the same vector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from semsearch.arguments import check_readable
from semsearch.encoders import load_encoder
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.encoders.truncated import TruncatedEncoder
from semsearch.errors import ArgumentError, EncoderError
from semsearch.inspection.records import (
    Inspection,
    PoolingCosines,
    Token,
    TokenKind,
    TokenSimilarity,
    unit_rows,
)
from semsearch.inspection.transformer import read_by_transformer
from semsearch.inspection.words import read_by_words

__all__ = [
    "Inspection",
    "PoolingCosines",
    "Token",
    "TokenKind",
    "TokenSimilarity",
    "inspect_text",
    "token_similarity",
]

#: The maximum number of token pairs to compare; word encoders have no maximum length.
MAX_CELLS = 4_000_000


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
        ArgumentError: a text is empty, has no words, or is not Unicode; or both are very long.
        EncoderError: the encoder does not exist, or has no token vectors.
    """
    check_readable("the text", left)
    check_readable("the text", right)
    read = _opened(spec)
    rows, columns = read(left), read(right)
    if len(rows.tokens) * len(columns.tokens) > MAX_CELLS:
        sizes = f"{len(rows.tokens):,} × {len(columns.tokens):,}"
        raise ArgumentError(f"{sizes} tokens are too many to compare; shorten a text")
    for side in (rows, columns):
        if not side.tokens:
            raise ArgumentError(f"encoder '{side.spec}' finds no words in {side.text[:50]!r}")
    cosines = unit_rows(rows.token_vectors) @ unit_rows(columns.token_vectors).T
    return TokenSimilarity(rows, columns, cosines)


def _opened(spec: str) -> Callable[[str], Inspection]:
    """Load an encoder; returns a function that inspects texts."""
    if spec == "bm25" or spec.startswith("cross-encoder:"):
        raise EncoderError(f"{spec} has scores, not vectors; inspect an encoder such as minilm")
    # Torch, because the converted model returns only pooled vectors.
    encoder = load_encoder(spec, device="cpu", precision="fp32")
    if isinstance(encoder, TorchEncoder):
        return partial(read_by_transformer, encoder)
    if isinstance(encoder, TruncatedEncoder):
        raise EncoderError(f"{spec} has no token vectors; inspect it with all its dimensions")
    return partial(read_by_words, encoder)
