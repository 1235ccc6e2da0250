"""A bi-encoder on a plain CPU: converted once, then run without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime, Precision
from semsearch.protocols import Matrix, TokenSpans

__all__ = ["OpenVINOEncoder"]


class OpenVINOEncoder:
    """An encoder that OpenVINO runs.

    Args:
        spec: what was asked for.
        fingerprint: of the model that was converted; its vectors are the same, within rounding.
        converted: the model in the cache.
        precision: in which numbers it computes.
    """

    def __init__(
        self, spec: str, fingerprint: str, converted: Converted, precision: Precision
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.dimension = converted.dimension
        self.max_tokens = converted.max_tokens
        self._converted = converted
        self._runtime = OpenVINORuntime(converted, precision)

    def description(self) -> Mapping[str, Any]:
        """Its modules, its prompts and how much of a text it reads."""
        return {
            "modules": self._converted.modules,
            "prompts": self._converted.prompts,
            "max_tokens": self.max_tokens,
        }

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        return self._runtime.token_spans(text)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        return self._runtime.encode(texts, self._converted.prompts.get("query", ""))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        return self._runtime.encode(texts, self._converted.prompts.get("document", ""))
