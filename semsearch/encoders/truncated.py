"""Vectors truncated to their leading dimensions: ``MODEL@192d``.

Any model can be truncated; models trained for it lose less (Kusupati et al. 2022, Matryoshka
representation learning).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from semsearch.encoders.base import EncodesSentences
from semsearch.encoders.model_folder import ModelFolder
from semsearch.errors import EncoderError
from semsearch.protocols import Encoder, Matrix, TokenSpans, check_unit


class TruncatedEncoder(EncodesSentences):
    """An encoder whose vectors are truncated to their leading dimensions and normalised again.

    Args:
        encoder: the encoder with all dimensions.
        folder: its model, with the number of dimensions to keep.

    Raises:
        EncoderError: it has fewer dimensions.
    """

    def __init__(self, encoder: Encoder, folder: ModelFolder) -> None:
        dimension = folder.dimension or encoder.dimension
        if dimension > encoder.dimension:
            raise EncoderError(
                f"model '{encoder.spec}' has {encoder.dimension} dimensions, not {dimension}"
            )
        self._encoder = encoder
        self.spec = folder.spec
        self.fingerprint = folder.fingerprint
        self.dimension = dimension

    @property
    def max_document_tokens(self) -> int:
        """The maximum number of tokens of a document, without prompt and special tokens."""
        return self._encoder.max_document_tokens

    @property
    def max_query_tokens(self) -> int | None:
        """The maximum number of tokens of a query; None if there is no limit."""
        return self._encoder.max_query_tokens

    def description(self) -> Mapping[str, Any]:
        """The description of the encoder, and the number of its dimensions."""
        return {**self._encoder.description(), "dimensions": self._encoder.dimension}

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), without special tokens."""
        return self._encoder.token_spans(text)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries, shape (len(texts), dimension)."""
        return self._truncated(self._encoder.encode_queries(texts))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of passages, shape (len(texts), dimension)."""
        return self._truncated(self._encoder.encode_documents(texts))

    def _truncated(self, matrix: Matrix) -> Matrix:
        leading = matrix[:, : self.dimension]
        with numpy.errstate(invalid="ignore"):  # zero vectors become NaN, which is an error
            unit = leading / numpy.linalg.norm(leading, axis=1, keepdims=True)
        return check_unit(unit, self.spec)
