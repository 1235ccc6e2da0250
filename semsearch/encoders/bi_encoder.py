"""What bi-encoders of all runtimes have in common: prompts, limits, texts into unit vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from semsearch.arguments import check_text, check_texts
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.sentences import EncodesSentences
from semsearch.encoders.text_model import ModelFacts, TextModel, running
from semsearch.errors import EncoderError
from semsearch.protocols import Matrix, TokenSpans
from semsearch.vectors import check_unit


class BiEncoder(EncodesSentences, ABC):
    """A transformer that turns texts into unit vectors.

    Args:
        folder: the model.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder

    @property
    def spec(self) -> str:
        """What was asked for; a folder by its absolute path."""
        return self.folder.spec

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the model's files; known without loading it."""
        return self.folder.fingerprint

    @property
    @abstractmethod
    def facts(self) -> ModelFacts:
        """What must be known of the model."""

    @property
    @abstractmethod
    def precision(self) -> str:
        """In which numbers it computes; of int8, documents."""

    @property
    @abstractmethod
    def queries(self) -> TextModel:
        """What queries run on; its rows are unit vectors."""

    @property
    @abstractmethod
    def documents(self) -> TextModel:
        """What documents run on."""

    @property
    def dimension(self) -> int:
        """Width of its vectors."""
        return self.facts.dimension

    @cached_property
    def max_document_tokens(self) -> int:
        """How many tokens of a document it reads, besides its prompt and special tokens.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("document")

    @cached_property
    def max_query_tokens(self) -> int | None:
        """How many tokens of a query it reads, besides its prompt and special tokens.

        None where it reads all of any query.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return self._tokens_left("query")

    def description(self) -> Mapping[str, Any]:
        """Its modules, its prompts, how much of a text it reads, and the numbers it computes in."""
        return {
            "modules": self.facts.modules,
            "prompts": self.facts.prompts,
            "max_tokens": self.facts.max_tokens,
            "precision": self.precision,
            **({"commit": self.folder.commit} if self.folder.commit else {}),
        }

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        return self.documents.token_spans(check_text("text", text))

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        return self._encode(self.queries, texts, "query")

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        return self._encode(self.documents, texts, "document")

    def _encode(self, model: TextModel, texts: Sequence[str], name: str) -> Matrix:
        listed = check_texts("texts", texts)
        with running(self.spec):
            found = model.encode(listed, self.facts.prompts.get(name, ""))
        return check_unit(found, self.spec)

    def _tokens_left(self, name: str) -> int:
        """How many tokens of a text it reads behind one of its prompts."""
        prompt = self.facts.prompts.get(name)
        return tokens_left(
            self.spec, self.facts.max_tokens, name, len(self.token_spans(prompt)) if prompt else 0
        )


def tokens_left(spec: str, max_tokens: int, name: str, used: int) -> int:
    """How many tokens of a text a model reads behind a prompt.

    Args:
        spec: the model.
        max_tokens: how many tokens it reads in all, special tokens not counted.
        name: the prompt's, ``query`` or ``document``.
        used: how many tokens the prompt has.

    Raises:
        EncoderError: none are left.
    """
    if used >= max_tokens:
        raise EncoderError(
            f"model '{spec}' reads {max_tokens} tokens, and its prompt for a {name} has {used} "
            "already; shorten the prompt in its config_sentence_transformers.json"
        )
    return max_tokens - used
