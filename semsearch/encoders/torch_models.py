"""Bi-encoders and cross-encoders on torch: any model that Sentence-Transformers reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.arguments import check_pairs, check_text, check_texts
from semsearch.encoders.bi_encoder import BiEncoder
from semsearch.encoders.kind import why_not_bert_like
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.pooling import repooled
from semsearch.encoders.precision import Precision
from semsearch.encoders.specs import CROSS_ENCODER_PREFIX
from semsearch.encoders.text_model import ModelFacts, TextModel, running
from semsearch.encoders.torch_runtime import (
    loading,
    model_facts,
    text_model,
    unit_vectors,
    whole_text_tokenizer,
)
from semsearch.errors import PrecisionError
from semsearch.protocols import Encoder, Matrix, Reranker, Scores, TokenSpans
from semsearch.vectors import check_unit

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from tokenizers import Tokenizer

#: How long passages are for a model that reads any length.
UNLIMITED_MAX_TOKENS = 256

#: What we call torch's number types.
TORCH_PRECISIONS = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


def load_encoder(folder: ModelFolder, device: str | None, precision: Precision) -> Encoder:
    """A bi-encoder, whose weights are loaded at the first use.

    Raises:
        EncoderError: torch has no such precision.
    """
    return TorchEncoder(folder, device, precision=precision)


def load_reranker(folder: ModelFolder, device: str | None, precision: Precision) -> Reranker:
    """A cross-encoder, in fp32; its weights are loaded at the first use."""
    del precision
    return TorchReranker(folder, device)


class TorchEncoder(BiEncoder):
    """A bi-encoder on torch. The model is loaded at its first use.

    Batches are made of texts of like length for models that we know; others make their own.

    Raises:
        EncoderError: torch has no such precision.
    """

    def __init__(
        self,
        folder: ModelFolder,
        device: str | None = None,
        attention: str | None = None,
        precision: Precision = Precision.FP32,
    ) -> None:
        if precision is Precision.INT8:
            raise PrecisionError(f"model '{folder.spec}' runs on torch, which has no int8 here")
        super().__init__(folder)
        self._device = device
        self._attention = attention  # of transformers' implementations; None leaves it to them
        self._precision = precision

    @cached_property
    def facts(self) -> ModelFacts:
        """What must be known of the model."""
        return model_facts(
            self.model,
            self.dimension,
            UNLIMITED_MAX_TOKENS if self._longest is None else self._longest,
            {name: text for name, text in self.model.prompts.items() if text},
        )

    @cached_property
    def dimension(self) -> int:
        """Width of its vectors."""
        return int(self.model.get_embedding_dimension())

    @property
    def precision(self) -> str:
        """That of its weights."""
        return TORCH_PRECISIONS[str(self.model.dtype)]

    @property
    def queries(self) -> TextModel:
        """What queries run on; its rows are unit vectors."""
        return self.documents

    @cached_property
    def documents(self) -> TextModel:
        """What documents run on."""
        return text_model(self.model, self.facts, unit_vectors)

    @cached_property
    def max_query_tokens(self) -> int | None:
        """How many tokens of a query it reads, besides its prompt and special tokens.

        None where it reads all of any query.

        Raises:
            EncoderError: the prompt alone is as long as what it reads.
        """
        return None if self._longest is None else self._tokens_left("query")

    @cached_property
    def _longest(self) -> int | None:
        tokenizer = self.model.tokenizer
        longest = self.model.get_max_seq_length()
        if longest is None or math.isinf(longest):  # of averaged word vectors
            truncation = getattr(tokenizer, "truncation", None)
            return int(truncation["max_length"]) if truncation else None
        count = getattr(tokenizer, "num_special_tokens_to_add", None)  # word embeddings have none
        return int(longest) - (int(count(pair=False)) if count else 0)

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        offsets = self._tokenizer.encode(check_text("text", text), add_special_tokens=False).offsets
        return numpy.array(offsets, numpy.int64).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        if self._is_known:
            return super().encode_queries(texts)
        listed = check_texts("texts", texts)
        with running(self.spec):
            return self._unit(self.model.encode_query(listed, show_progress_bar=False))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        if self._is_known:
            return super().encode_documents(texts)
        listed = check_texts("texts", texts)
        with running(self.spec):
            return self._unit(self.model.encode_document(listed, show_progress_bar=False))

    def encode_plainly(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors without any prompt, by Sentence-Transformers' own batches."""
        return self._unit(self.model.encode(list(texts), prompt="", show_progress_bar=False))

    @cached_property
    def _is_known(self) -> bool:
        """Whether we make the batches; other models are left to make their own."""
        return (
            why_not_bert_like(self.folder) is None
            and all(getattr(module, "include_prompt", True) for module in self.model)
            and getattr(self.model.tokenizer, "backend_tokenizer", None) is not None
        )

    def _unit(self, vectors: Any) -> Matrix:
        matrix = numpy.asarray(vectors, numpy.float32).reshape(-1, self.dimension)
        with numpy.errstate(divide="ignore", invalid="ignore"):
            unit: Matrix = matrix / numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return check_unit(unit, self.spec)

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model itself, loaded."""
        from sentence_transformers import SentenceTransformer

        with loading(self.spec):
            model = SentenceTransformer(
                str(self.folder.path),
                device=self._device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "use_safetensors": True,
                    "attn_implementation": self._attention,
                    "dtype": self._number_type(),
                },
            )
            if self.folder.pooling:
                model = repooled(model, self.folder.pooling)
        return model.eval()

    def _number_type(self) -> str:
        """In torch's words. Half precision pays on a GPU; a CPU may only emulate it."""
        if self._precision is Precision.AUTO:
            import torch

            device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
            return "float32" if torch.device(device).type == "cpu" else "float16"
        return "bfloat16" if self._precision is Precision.BF16 else "float32"

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return whole_text_tokenizer(self.model.tokenizer)


class TorchReranker:
    """A cross-encoder with one output, on torch. Its weights are loaded at the first use."""

    def __init__(
        self, folder: ModelFolder, device: str | None = None, attention: str | None = None
    ) -> None:
        self._folder = folder
        self._device = device
        self._attention = attention  # of transformers' implementations; None leaves it to them

    @property
    def spec(self) -> str:
        """What loads it again."""
        return CROSS_ENCODER_PREFIX + self._folder.spec

    @property
    def precision(self) -> str:
        """That of its weights."""
        return TORCH_PRECISIONS[str(self.model.dtype)]

    @cached_property
    def facts(self) -> ModelFacts:
        """What must be known of the model."""
        special: int = self.model.tokenizer.num_special_tokens_to_add(pair=True)
        return model_facts(self.model, 1, int(self.model.max_seq_length) - special, {})

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """How well each passage answers, higher is better, shape (len(passages),)."""
        return self.score_pairs([(query, passage) for passage in check_texts("passages", passages)])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair, higher is better, shape (len(pairs),)."""
        pairs = check_pairs("pairs", pairs)
        with running(self.spec):
            if why_not_bert_like(self._folder) is not None:
                return self.score_plainly(pairs)
            return self._pairs.run(pairs)[:, 0]

    def score_plainly(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """The same by Sentence-Transformers' own batches."""
        if not pairs:
            return numpy.empty(0, numpy.float32)
        scores = self.model.predict(list(pairs), show_progress_bar=False)
        return numpy.asarray(scores, numpy.float32).reshape(len(pairs))

    def scores_of(self, features: dict[str, Any]) -> Any:
        """The scores in what the modules say, through the model's activation: (pairs, 1)."""
        return self.model.activation_fn(features["scores"]).reshape(-1, 1)

    @cached_property
    def _pairs(self) -> TextModel:
        return text_model(self.model, self.facts, self.scores_of)

    @cached_property
    def model(self) -> CrossEncoder:
        """The model itself, loaded."""
        from sentence_transformers import CrossEncoder

        with loading(self._folder.spec):
            model = CrossEncoder(
                str(self._folder.path),
                device=self._device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "attn_implementation": self._attention},
            )
        return model.eval()
