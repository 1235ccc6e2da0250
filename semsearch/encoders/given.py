"""Encoders that a program makes itself: of a function, of a SentenceTransformer."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy

from semsearch.encoders.base import EncodesSentences
from semsearch.errors import ArgumentError, EncoderError, check_text, check_texts, first_line, shown
from semsearch.protocols import Matrix, TokenSpans, check_unit

#: Returns a row of numbers for each text.
Function: TypeAlias = Callable[[list[str]], Any]

#: About the tokens of a model that is not known: letters and digits, six at most, and other signs.
_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
#: The longest passages, in such tokens, unless a limit is given.
MAX_TOKENS = 256


class FunctionEncoder(EncodesSentences):
    """An encoder of functions; see `encoder_from`.

    Args:
        spec: its spec.
        fingerprint: what identifies its vectors.
        documents: the function for documents.
        queries: the function for queries.
        max_tokens: the longest passages.
    """

    def __init__(
        self,
        spec: str,
        fingerprint: str,
        documents: Function,
        queries: Function,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint
        self.max_document_tokens = max_tokens
        self._documents, self._queries = documents, queries

    @cached_property
    def dimension(self) -> int:
        """The dimension of its vectors, found by encoding a text."""
        return int(self.encode_documents(["dimension"]).shape[1])

    def description(self) -> Mapping[str, Any]:
        """The maximum length of passages."""
        return {"max_tokens": self.max_document_tokens}

    def token_spans(self, text: str) -> TokenSpans:
        """The character ranges of what are about the tokens of a text, shape (n, 2)."""
        spans = [match.span() for match in _TOKEN.finditer(check_text("text", text))]
        return numpy.array(spans, numpy.int64).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors by the function for queries, shape (len(texts), dimension)."""
        return self._encode(self._queries, texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors by the function for documents, shape (len(texts), dimension)."""
        return self._encode(self._documents, texts)

    def _encode(self, function: Function, texts: Sequence[str]) -> Matrix:
        listed = check_texts("texts", texts)
        if not listed:
            return numpy.empty((0, self.dimension), numpy.float32)
        try:
            matrix = numpy.asarray(function(listed), numpy.float32)
        except (TypeError, ValueError) as error:
            raise EncoderError(f"encoder '{self.spec}': {first_line(error)}") from error
        if matrix.ndim != 2 or len(matrix) != len(listed):
            returned = f"returned shape {matrix.shape} for {len(listed)} texts"
            raise EncoderError(f"encoder '{self.spec}' {returned}")
        with numpy.errstate(divide="ignore", invalid="ignore"):  # zero vectors become NaN
            return check_unit(matrix / numpy.linalg.norm(matrix, axis=1, keepdims=True), self.spec)


def encoder_from(
    function: Function, name: str, *, queries: Function | None = None, max_tokens: int = MAX_TOKENS
) -> FunctionEncoder:
    """An encoder of a function from texts to vectors.

    >>> from semsearch import encoder_from
    >>> encoder = encoder_from(lambda texts: [[len(text), 1] for text in texts], name="length")
    >>> encoder.encode_documents(["a cat"]).round(2).tolist()
    [[0.9800000190734863, 0.20000000298023224]]

    An index knows it by its name alone: give another name when the vectors change. The index is
    opened with it: ``Index.open(path, encoder)``.

    Args:
        function: returns a row of numbers for each text; rows are normalised.
        name: its name.
        queries: the function for queries; None if it is the same.
        max_tokens: the longest passages, in words of at most six letters.

    Raises:
        ArgumentError: `function` or `queries` is no function, or the name is empty.
    """
    for one in (function, queries or function):
        if not callable(one):
            raise ArgumentError(f"encoder_from needs a function, not {shown(one)}")
    if not check_text("name", name).strip():
        raise ArgumentError("name is empty")
    spec, fingerprint = f"given:{name}", f"given-1-{name}"
    return FunctionEncoder(spec, fingerprint, function, queries or function, max_tokens)


class SentenceTransformerEncoder(FunctionEncoder):
    """A SentenceTransformer that a program has loaded, with its prompts.

    Its fingerprint covers the weights, the modules, the prompts and the maximum length.
    """

    def __init__(self, model: Any) -> None:
        name = model.model_card_data.base_model or type(model).__name__
        tokenizer = getattr(model, "tokenizer", None)  # static embeddings have another kind
        self._tokenizer = tokenizer if getattr(tokenizer, "is_fast", False) else None
        super().__init__(f"given:{name}", _digest(model), model.encode_document, model.encode_query)
        prompt = max(map(len, map(self.token_spans, model.prompts.values())), default=0)
        own = prompt + (self._tokenizer.num_special_tokens_to_add() if self._tokenizer else 0)
        limit = model.get_max_seq_length() or math.inf
        self.max_document_tokens = MAX_TOKENS if limit == math.inf else max(1, int(limit) - own)

    def token_spans(self, text: str) -> TokenSpans:
        """The character ranges of a text's tokens, shape (n, 2), without special tokens."""
        if self._tokenizer is None:
            return super().token_spans(text)
        options = {"add_special_tokens": False, "truncation": False, "verbose": False}
        found = self._tokenizer(check_text("text", text), return_offsets_mapping=True, **options)
        return numpy.array(found["offset_mapping"], numpy.int64).reshape(-1, 2)


def _digest(model: Any) -> str:
    """A digest of all that determines the vectors of a SentenceTransformer."""
    settings = [str(model), model.prompts, model.get_max_seq_length(), model.truncate_dim]
    found = hashlib.sha256(json.dumps(settings).encode())
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return found.hexdigest()


def is_sentence_transformer(value: object) -> bool:
    """Whether a value is a SentenceTransformer, checked without importing the package."""
    return any(
        kind.__name__ == "SentenceTransformer" and kind.__module__.startswith("sentence_transform")
        for kind in type(value).__mro__
    )
