"""A bi-encoder on a plain CPU: converted once, then run without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from semsearch.arguments import check_text, check_texts
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.precision import Precision, float_precision
from semsearch.encoders.prompts import tokens_left
from semsearch.protocols import Matrix, TokenSpans
from semsearch.vectors import check_unit

if TYPE_CHECKING:
    from semsearch.encoders.quantization import Quantized


class OpenVINOEncoder:
    """An encoder that OpenVINO runs.

    Args:
        spec: what was asked for.
        fingerprint: of the model that was converted; its vectors are the same, within rounding.
        converted: the model in the cache.
        precision: in which numbers it computes.
        commit: of a model from the hub.

    Raises:
        EncoderError: the processor or the model is not fit for that precision.
    """

    def __init__(
        self,
        spec: str,
        fingerprint: str,
        converted: Converted,
        precision: Precision,
        *,
        commit: str | None = None,
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.dimension = converted.dimension
        self._converted = converted
        self._commit = commit
        self._is_quantized = precision is Precision.INT8
        self._floats = float_precision(Precision.AUTO if self._is_quantized else precision)
        self._runtime = OpenVINORuntime(converted, self._floats)

    @cached_property
    def max_document_tokens(self) -> int:
        """How many tokens of a document it reads, besides its prompt and special tokens.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("document")

    @cached_property
    def max_query_tokens(self) -> int:
        """How many tokens of a query it reads, besides its prompt and special tokens.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("query")

    def _tokens_left(self, name: str) -> int:
        prompt = self._converted.prompts.get(name)
        used = len(self._runtime.token_spans(prompt)) if prompt else 0
        return tokens_left(self.spec, self._converted.max_tokens, name, used)

    def description(self) -> Mapping[str, Any]:
        """Its modules, its prompts, how much of a text it reads, and the numbers it computes in.

        For int8, also what the quantised model's gate has measured.
        """
        description = {
            "modules": self._converted.modules,
            "prompts": self._converted.prompts,
            "max_tokens": self._converted.max_tokens,
            "precision": self._floats.value,
        }
        if self._is_quantized:
            description |= {"precision": "int8", "parity": self._quantized.parity._asdict()}
        return description | ({"commit": self._commit} if self._commit else {})

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        return self._documents.token_spans(check_text("text", text))

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        prompt = self._converted.prompts.get("query", "")
        return check_unit(self._runtime.encode(check_texts("texts", texts), prompt), self.spec)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        prompt = self._converted.prompts.get("document", "")
        return check_unit(self._documents.encode(check_texts("texts", texts), prompt), self.spec)

    def encode_ahead(self, texts: Sequence[str]) -> None:
        """Encode documents that the next `encode_documents` will be asked for."""
        self._documents.encode_ahead(texts, self._converted.prompts.get("document", ""))

    @cached_property
    def _documents(self) -> OpenVINORuntime:
        """What documents run on; queries are few, and need not be quantised."""
        if self._is_quantized:
            return OpenVINORuntime(self._quantized.model, self._floats)
        return self._runtime

    @cached_property
    def _quantized(self) -> Quantized:
        from semsearch.encoders.quantization import quantized_model

        return quantized_model(self._converted, self.fingerprint)
