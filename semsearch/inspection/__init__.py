"""An encoder opened: the tokens of a text, the vector of each, and what becomes of them.

A transformer gives a token another vector in every context: the `get` of "get scared" is not that
of "get the drinks". Other encoders give a word one vector wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from semsearch.arguments import check_readable
from semsearch.encoders import load_encoder
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.encoders.truncated import TruncatedEncoder
from semsearch.errors import EncoderError, QueryError
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

#: How many pairs of tokens are compared at most; words are not limited by a model.
MAX_CELLS = 4_000_000


def inspect_text(spec: str, text: str) -> Inspection:
    """What an encoder makes of a text.

    Args:
        spec: the encoder, as `load_encoder` takes it.
        text: read as a document, with the model's prompt for documents.

    Raises:
        ArgumentError: the text is empty or not Unicode.
        EncoderError: there is no such encoder, or it has no vectors of tokens.
    """
    check_readable("the text", text)
    return _opened(spec)(text)


def token_similarity(spec: str, left: str, right: str) -> TokenSimilarity:
    """The cosine of each token of one text with each token of another.

    Args:
        spec: the encoder, as `load_encoder` takes it.
        left: the text whose tokens are the rows.
        right: the text whose tokens are the columns.

    Raises:
        ArgumentError: a text is empty, has no word, or is not Unicode; or both are very long.
        EncoderError: there is no such encoder, or it has no vectors of tokens.
    """
    check_readable("the text", left)
    check_readable("the text", right)
    read = _opened(spec)
    rows, columns = read(left), read(right)
    if len(rows.tokens) * len(columns.tokens) > MAX_CELLS:
        sizes = f"{len(rows.tokens):,} × {len(columns.tokens):,}"
        raise QueryError(f"{sizes} tokens are too many to compare each with each; shorten a text")
    for side in (rows, columns):
        if not side.tokens:
            raise QueryError(f"encoder '{side.spec}' finds no word in {side.text[:50]!r}")
    cosines = unit_rows(rows.token_vectors) @ unit_rows(columns.token_vectors).T
    return TokenSimilarity(rows, columns, cosines)


def _opened(spec: str) -> Callable[[str], Inspection]:
    """The encoder, ready to read texts."""
    if spec == "bm25" or spec.startswith("cross-encoder:"):
        raise EncoderError(f"{spec} gives scores, not vectors; inspect an encoder such as minilm")
    # Torch shows the vectors of tokens, which the converted model has pooled inside.
    encoder = load_encoder(spec, device="cpu", precision="fp32")
    if isinstance(encoder, TorchEncoder):
        return partial(read_by_transformer, encoder)
    if isinstance(encoder, TruncatedEncoder):
        raise EncoderError(f"{spec} has no vectors of tokens; inspect it with all its dimensions")
    return partial(read_by_words, encoder)
