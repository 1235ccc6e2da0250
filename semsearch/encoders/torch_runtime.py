"""Sentence-Transformers models on torch: any model, any device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.arguments import check_text, check_texts
from semsearch.encoders.batching import batches, padded
from semsearch.encoders.kind import why_not_bert_like
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.pooling import repooled
from semsearch.encoders.precision import Precision
from semsearch.encoders.prompts import tokens_left
from semsearch.errors import EncoderError, first_line
from semsearch.protocols import Matrix, TokenSpans
from semsearch.vectors import check_unit

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

#: How many tokens, padding included, go through the model at once.
CPU_BATCH_TOKENS = 1024
GPU_BATCH_TOKENS = 16_384
#: How many texts are tokenised and sorted by length at once.
WINDOW_TEXTS = 16_384
#: How short the shortest text of a batch may be, as a part of the longest one.
LEAST_FILL = 0.9

#: How long passages are for a model that reads any length.
UNLIMITED_MAX_TOKENS = 256

#: What we call torch's number types.
TORCH_PRECISIONS = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


class TorchEncoder:
    """A bi-encoder that sentence-transformers runs. The model is loaded at its first use."""

    def __init__(
        self,
        folder: ModelFolder,
        device: str | None = None,
        attention: str | None = None,
        precision: Precision = Precision.FP32,
    ) -> None:
        if precision is Precision.INT8:
            raise EncoderError(f"model '{folder.spec}' runs on torch, which has no int8 here")
        self._folder = folder
        self._device = device
        self._attention = attention  # of transformers' implementations; None leaves it to them
        self._precision = precision

    @property
    def spec(self) -> str:
        """What was asked for; a folder by its absolute path."""
        return self._folder.spec

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the model's files; known without loading it."""
        return self._folder.fingerprint()

    @cached_property
    def dimension(self) -> int:
        """Width of its vectors."""
        return int(self.model.get_embedding_dimension())

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
        return None if self._longest is None else self._tokens_left("query")

    def _tokens_left(self, name: str) -> int:
        prompt = self.model.prompts.get(name)
        used = len(self.token_spans(prompt)) if prompt else 0
        return tokens_left(self.spec, self.max_tokens, name, used)

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens it reads, those of a prompt counted and special tokens not."""
        return UNLIMITED_MAX_TOKENS if self._longest is None else self._longest

    @cached_property
    def _longest(self) -> int | None:
        tokenizer = self.model.tokenizer
        longest = self.model.get_max_seq_length()
        if longest is None or math.isinf(longest):  # of averaged word vectors
            truncation = getattr(tokenizer, "truncation", None)
            return int(truncation["max_length"]) if truncation else None
        special: int = tokenizer.num_special_tokens_to_add(pair=False)
        return int(longest) - special

    def description(self) -> Mapping[str, Any]:
        """Its modules, its prompts, how much of a text it reads, and the numbers it computes in."""
        commit = self._folder.commit
        return {
            "modules": [type(module).__name__ for module in self.model],
            "prompts": {name: text for name, text in self.model.prompts.items() if text},
            "max_tokens": self.max_tokens,
            "precision": TORCH_PRECISIONS[str(self.model.dtype)],
            **({"commit": commit} if commit else {}),
        }

    def token_spans(self, text: str) -> TokenSpans:
        """Character ranges of a text's tokens, shape (n, 2), special tokens left out."""
        offsets = self._tokenizer.encode(check_text("text", text), add_special_tokens=False).offsets
        return numpy.array(offsets, numpy.int64).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for queries, shape (len(texts), dimension)."""
        texts = check_texts("texts", texts)
        if self._is_packed:
            return self._packed(texts, self.model.prompts.get("query") or "")
        return self._unit(self.model.encode_query(texts, show_progress_bar=False))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        texts = check_texts("texts", texts)
        if self._is_packed:
            return self._packed(texts, self.model.prompts.get("document") or "")
        return self._unit(self.model.encode_document(texts, show_progress_bar=False))

    def encode_plainly(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors without any prompt, shape (len(texts), dimension)."""
        return self._unit(self.model.encode(list(texts), prompt="", show_progress_bar=False))

    @cached_property
    def _is_packed(self) -> bool:
        """Whether batches are made here, of texts of like length; others are left to the model."""
        return (
            why_not_bert_like(self._folder) is None
            and all(getattr(module, "include_prompt", True) for module in self.model)
            and getattr(self.model.tokenizer, "backend_tokenizer", None) is not None
        )

    def _packed(self, texts: Sequence[str], prompt: str) -> Matrix:
        """Unit vectors of texts, shape (len(texts), dimension).

        A device works on what it has been given while the next texts are tokenised; only the
        end waits for it.
        """
        import torch

        device = self.model.device
        batch_tokens = CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS
        matrix = torch.empty((len(texts), self.dimension), device=device)
        with torch.inference_mode():
            for start in range(0, len(texts), WINDOW_TEXTS):
                window = [prompt + text for text in texts[start : start + WINDOW_TEXTS]]
                encodings = self._cutting_tokenizer.encode_batch_fast(window)
                token_ids = [encoding.ids for encoding in encodings]
                for rows, length in batches(token_ids, batch_tokens, least_fill=LEAST_FILL):
                    vectors = self._forward([token_ids[row] for row in rows], length)
                    places = torch.from_numpy(start + rows).to(device, non_blocking=True)
                    matrix[places] = vectors.float()
        return self._unit(matrix.cpu())

    def _forward(self, token_ids: Sequence[list[int]], length: int) -> Any:
        """What all modules make of some texts, shape (len(token_ids), dimension), on the device."""
        import torch

        names = self.model.tokenizer.model_input_names
        ids, mask = padded(token_ids, length, self.model.tokenizer.pad_token_id or 0)
        arrays = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": numpy.zeros_like(ids),
        }
        features: dict[str, Any] = {
            name: torch.from_numpy(array).to(self.model.device, non_blocking=True)
            for name, array in arrays.items()
            if name in names
        }
        for module in self.model:
            features = module(features)
        return features["sentence_embedding"]

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
                str(self._folder.path),
                device=self._device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "use_safetensors": True,
                    "attn_implementation": self._attention,
                    "dtype": self._number_type(),
                },
            )
            if self._folder.pooling:
                model = repooled(model, self._folder.pooling)
        return model.eval()

    def _number_type(self) -> str:
        """In torch's words. Half precision pays on a GPU; a CPU may only emulate it."""
        if self._precision is Precision.AUTO:
            import torch

            device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
            return "float32" if torch.device(device).type == "cpu" else "float16"
        return "bfloat16" if self._precision is Precision.BF16 else "float32"

    @cached_property
    def _cutting_tokenizer(self) -> Tokenizer:
        """The model's own tokenizer, which cuts off what the model does not read."""
        tokenizer = whole_text_tokenizer(self.model.tokenizer)
        tokenizer.enable_truncation(self.model.get_max_seq_length())
        return tokenizer

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return whole_text_tokenizer(self.model.tokenizer)


def whole_text_tokenizer(tokenizer: Any) -> Tokenizer:
    """A copy of one of transformers' tokenizers that cuts nothing off."""
    from tokenizers import Tokenizer

    backend = tokenizer  # a static model's
    if not isinstance(backend, Tokenizer):
        backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(f"{type(tokenizer).__name__} tells no character offsets")
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


@contextmanager
def loading(spec: str) -> Iterator[None]:
    """Whatever the libraries make of a user's folder, as an error of ours, and quietly."""
    try:
        with quiet_transformers():
            yield
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"model '{spec}' cannot be loaded: {first_line(error)}") from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from drawing bars and printing advice into our output."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
        logging.set_verbosity(verbosity)
