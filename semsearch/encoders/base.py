"""Base classes of encoders and rerankers: arguments, prompts, limits, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy

from semsearch.encoders.model_folder import ModelFolder, first_stage_weight
from semsearch.encoders.specs import CROSS_ENCODER_PREFIX
from semsearch.encoders.text_model import TextModel
from semsearch.errors import (
    EncoderError,
    check_text,
    check_texts,
    first_line,
)
from semsearch.protocols import Encoder, Matrix, Scores, TokenSpans, check_unit


class Coverage(NamedTuple):
    """The number of words that an encoder has read, and of unknown words among them."""

    words: int
    unknown: int
    most_frequent_unknown: tuple[str, ...]  #: some of them, the most frequent first


@runtime_checkable
class KnowsWords(Protocol):
    """An encoder with a vocabulary, which counts the words that it does not know."""

    def knows(self, word: str) -> bool:
        """Whether it has a vector for this word."""

    def coverage(self) -> Coverage:
        """The numbers of words in all documents encoded so far."""


class EncodesSentences:
    """A base class of encoders with the method `encode` of SentenceTransformer."""

    def encode(
        self: Encoder,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        *,
        convert_to_tensor: bool = False,
        **ignored: Any,
    ) -> Any:
        """Unit vectors of sentences.

        >>> from semsearch import load_encoder
        >>> load_encoder("hashing:64").encode(["a cat", "a dog"], batch_size=32).shape
        (2, 64)

        Args:
            sentences: one, or several.
            prompt_name: ``query`` encodes them as queries, anything else as documents.
            convert_to_tensor: return a torch tensor.
            ignored: other arguments of sentence-transformers, which have no effect.

        Returns:
            float32, shape (dimension,) for one sentence, else (sentences, dimension).

        Raises:
            ArgumentError: the sentences are not strings.
        """
        del ignored
        one = isinstance(sentences, str)
        texts = check_texts("sentences", [sentences] if one else sentences)
        encode = self.encode_queries if prompt_name == "query" else self.encode_documents
        vectors: Any = encode(texts)
        if convert_to_tensor:
            import torch

            vectors = torch.from_numpy(vectors)
        return vectors[0] if one else vectors


@contextmanager
def running(spec: str) -> Iterator[None]:
    """Convert errors of a runtime into an EncoderError."""
    try:
        yield
    # Of torch and OpenVINO, including lack of memory, and token ids without a row of weights.
    except (RuntimeError, IndexError) as error:
        raise EncoderError(f"model '{spec}' fails: {first_line(error)}") from error


class BiEncoder(EncodesSentences):
    """A transformer that encodes texts as unit vectors, on any runtime.

    Args:
        folder: the model.
        queries: the model for queries; its rows are unit vectors.
        precision: the precision; int8 applies to documents.

    Raises:
        EncoderError: the spec names more dimensions than the model has.
    """

    def __init__(self, folder: ModelFolder, queries: TextModel, precision: str) -> None:
        self.folder = folder
        self.spec = folder.spec  #: loads it again; a folder is named by its absolute path
        self.queries = queries
        self.facts = queries.facts
        self.precision = precision
        self.dimension = folder.dimension or self.facts.dimension
        if self.dimension > self.facts.dimension:
            raise EncoderError(f"model '{self.spec}' has only {self.facts.dimension} dimensions")

    @cached_property
    def documents(self) -> TextModel:
        """The model for documents."""
        return self.queries

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model's files, without loading it."""
        return self.folder.fingerprint

    @cached_property
    def max_document_tokens(self) -> int:
        """The maximum number of tokens of a document, without prompt and special tokens.

        Raises:
            EncoderError: the prompt alone reaches the model's limit.
        """
        return self._tokens_left("document")

    def description(self) -> Mapping[str, Any]:
        """Its modules, prompts, maximum length and precision."""
        return {
            "modules": self.facts.modules,
            "prompts": self.facts.prompts,
            "max_tokens": self.facts.max_tokens,
            "precision": self.precision,
            **({"commit": self.folder.commit} if self.folder.commit else {}),
            **({"dimensions": self.facts.dimension} if self.folder.dimension else {}),
        }

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), without special tokens."""
        return self.documents.token_spans(check_text("text", text))

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        return self._encode(self.queries, texts, "query")

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        return self._encode(self.documents, texts, "document")

    def _encode(self, model: TextModel, texts: Sequence[str], name: str) -> Matrix:
        with running(self.spec):
            found = model.encode(check_texts("texts", texts), self.facts.prompts.get(name, ""))
        return self._unit(found)

    def _unit(self, vectors: Matrix) -> Matrix:
        """Unit vectors, normalised again if only their leading dimensions are kept.

        Any model can be truncated; models trained for it lose less (Kusupati et al. 2022,
        Matryoshka representation learning).
        """
        if self.folder.dimension:
            vectors = vectors[:, : self.dimension]
            with numpy.errstate(divide="ignore", invalid="ignore"):  # zero vectors become NaN
                vectors = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return check_unit(vectors, self.spec)

    def _tokens_left(self, name: str) -> int:
        """The maximum number of tokens of a text after a prompt."""
        limit, prompt = self.facts.max_tokens, self.facts.prompts.get(name)
        used = len(self.token_spans(prompt)) if prompt else 0
        if used >= limit:
            raise EncoderError(
                f"model '{self.spec}' reads {limit} tokens, but its prompt for a {name} has {used}"
            )
        return limit - used


class BaseReranker:
    """A transformer that scores pairs of texts, on any runtime.

    Args:
        folder: the model.
        pairs: the model for pairs, with one output.
        precision: its precision.
    """

    def __init__(self, folder: ModelFolder, pairs: TextModel, precision: str) -> None:
        self.folder = folder
        self.spec = CROSS_ENCODER_PREFIX + folder.spec
        self.first_stage_weight = first_stage_weight(folder.path)
        self.pairs = pairs
        self.precision = precision

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """One score per passage, higher is better, shape (len(passages),)."""
        return self.score_pairs([(query, passage) for passage in check_texts("passages", passages)])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score per pair, higher is better, shape (len(pairs),)."""
        with running(self.spec):
            return self._scores([(left, right) for left, right in pairs])

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        return self.pairs.run(pairs)[:, 0]
