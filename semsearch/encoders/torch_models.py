"""Bi-encoders and cross-encoders on torch: any model that Sentence-Transformers can load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.encoders.base import BaseReranker, BiEncoder, running
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.specs import Pooling, Precision
from semsearch.encoders.text_model import INPUTS, Batching, Features, ModelFacts, TextModel
from semsearch.encoders.torch_loading import load_checked, repooled, why_not_by_ids
from semsearch.errors import EncoderError, check_texts
from semsearch.protocols import Matrix, Scores

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from tokenizers import Tokenizer

#: The maximum length of passages for models without a limit, such as averaged word vectors.
UNLIMITED_MAX_TOKENS = 256

#: The names of torch's number types.
TORCH_PRECISIONS = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


class TorchEncoder(BiEncoder):
    """A bi-encoder on torch.

    Texts are batched by length for transformers; other models batch texts themselves.

    Args:
        folder: the model.
        device: a torch device; None for a GPU if there is one.
        precision: its precision.
        attention: transformers' implementation of attention; None for its default.

    Raises:
        EncoderError: the model cannot be loaded, or torch does not support the precision.
    """

    def __init__(
        self,
        folder: ModelFolder,
        device: str | None = None,
        precision: Precision = Precision.FP32,
        *,
        attention: str | None = None,
    ) -> None:
        from sentence_transformers import SentenceTransformer

        if precision is Precision.INT8:
            raise EncoderError(f"model '{folder.spec}' runs on torch, which does not support int8")
        model = load_checked(
            SentenceTransformer,
            folder,
            device,
            attention=attention,
            dtype=_number_type(device, precision),
            needs_pooler=folder.pooling is Pooling.POOLER,
        )
        self.model = repooled(model, folder.pooling) if folder.pooling else model
        self._max_tokens = _max_tokens(self.model)
        facts = model_facts(
            self.model,
            int(self.model.get_embedding_dimension()),
            self._max_tokens or UNLIMITED_MAX_TOKENS,
            {name: text for name, text in self.model.prompts.items() if text},
        )
        runtime = TorchRuntime(self.model, self.result_of)
        queries = TextModel(facts, partial(cutting_tokenizer, self.model), runtime)
        super().__init__(folder, queries, TORCH_PRECISIONS[str(self.model.dtype)])
        self._is_by_ids = why_not_by_ids(self.model) is None  # `TextModel` batches the texts

    def result_of(self, features: dict[str, Any]) -> Any:
        """The unit vectors in the output of the modules, truncated if the model says so."""
        from torch.nn.functional import normalize

        return normalize(features["sentence_embedding"][:, : self.facts.dimension].float(), dim=1)

    def _encode(self, model: TextModel, texts: Sequence[str], name: str) -> Matrix:
        if self._is_by_ids:
            return super()._encode(model, texts, name)
        encode = self.model.encode_query if name == "query" else self.model.encode_document
        listed = check_texts("texts", texts)
        with running(self.spec):
            found = encode(listed, show_progress_bar=False, normalize_embeddings=True)
        return self._unit(numpy.asarray(found, numpy.float32).reshape(-1, self.facts.dimension))


def _max_tokens(model: SentenceTransformer) -> int | None:
    """The maximum number of tokens without special ones; None if there is no limit."""
    longest = model.get_max_seq_length()
    if longest is None or math.isinf(longest):  # averaged word vectors
        truncation = getattr(model.tokenizer, "truncation", None)
        return int(truncation["max_length"]) if truncation else None
    count = getattr(model.tokenizer, "num_special_tokens_to_add", None)  # not for word embeddings
    return int(longest) - (int(count(pair=False)) if count else 0)


def _number_type(device: str | None, precision: Precision) -> str:
    """The torch number type. AUTO uses half precision on a GPU; a CPU may only emulate it."""
    if precision in (Precision.AUTO, Precision.FLOAT):
        import torch

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return "float32" if torch.device(device).type == "cpu" else "float16"
    return "bfloat16" if precision is Precision.BF16 else "float32"


class TorchReranker(BaseReranker):
    """A cross-encoder with one output, on torch in fp32.

    Args:
        folder: the model.
        device: a torch device; None for a GPU if there is one.
        attention: transformers' implementation of attention; None for its default.

    Raises:
        EncoderError: it cannot be loaded, lacks a trained head, or returns several scores per pair.
    """

    def __init__(
        self, folder: ModelFolder, device: str | None = None, *, attention: str | None = None
    ) -> None:
        from sentence_transformers import CrossEncoder

        self.model = load_checked(
            CrossEncoder, folder, device, attention=attention, dtype="float32", needs_pooler=True
        )
        if self.model.num_labels > 1:
            raise EncoderError(
                f"model '{folder.spec}' returns {self.model.num_labels} values per pair, not one"
            )
        special: int = self.model.tokenizer.num_special_tokens_to_add(pair=True)
        facts = model_facts(self.model, 1, int(self.model.max_seq_length) - special, {})
        runtime = TorchRuntime(self.model, self.result_of)
        pairs = TextModel(facts, partial(cutting_tokenizer, self.model), runtime)
        super().__init__(folder, pairs, TORCH_PRECISIONS[str(self.model.dtype)])

    def result_of(self, features: dict[str, Any]) -> Any:
        """The scores in the output of the modules, with the model's activation: (pairs, 1)."""
        return self.model.activation_fn(features["scores"]).reshape(-1, 1)

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        if why_not_by_ids(self.model) is None:
            return super()._scores(pairs)
        scores = self.model.predict(list(pairs), show_progress_bar=False)
        return numpy.asarray(scores, numpy.float32).reshape(len(pairs))


CPU_BATCHING = Batching(1024, 250_000, least_fill=0.9)
GPU_BATCHING = Batching(32_768, 4_000_000, least_fill=0.9)


class TorchRuntime:
    """Runs the modules of a loaded model, one batch after another.

    Args:
        model: the loaded model.
        result: computes the result, shape (texts, dimension), from the output of its modules.
    """

    #: A batch uses the whole device.
    at_once = 1

    def __init__(
        self, model: SentenceTransformer | CrossEncoder, result: Callable[[dict[str, Any]], Any]
    ) -> None:
        self._model = model
        self._result = result

    @property
    def batching(self) -> Batching:
        """The batching that suits the model's device."""
        return CPU_BATCHING if self._model.device.type == "cpu" else GPU_BATCHING

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """The output for each batch, in order: shape (texts, dimension).

        The device computes while the next texts are tokenised; results are fetched at the end.
        """
        found = [self._forward(features) for features in batches]
        yield from (rows.cpu().numpy() for rows in found)

    def run_alone(self, features: Features) -> Matrix:
        """The output for one batch: shape (texts, dimension)."""
        rows: Matrix = self._forward(features).cpu().numpy()
        return rows

    def _forward(self, features: Features) -> Any:
        import torch

        with torch.inference_mode(), ready_attention(self._model.device.type):
            inputs: dict[str, Any] = {
                name: torch.from_numpy(array).to(self._model.device, non_blocking=True)
                for name, array in features.items()
            }
            for module in self._model:
                inputs = module(inputs)
            return self._result(inputs).float()


def ready_attention(device: str) -> AbstractContextManager[None]:
    """On a GPU, exclude cuDNN's attention, which compiles a kernel for each new shape of a batch.

    Args:
        device: the type of a torch device.
    """
    if device != "cuda":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(
        [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    )


def model_facts(
    model: SentenceTransformer | CrossEncoder,
    dimension: int,
    max_tokens: int,
    prompts: dict[str, str],
) -> ModelFacts:
    """The properties of a loaded model."""
    tokenizer = model.tokenizer
    names = getattr(tokenizer, "model_input_names", ())
    return ModelFacts(
        dimension,
        max_tokens,
        [name for name in INPUTS if name in names],
        getattr(tokenizer, "pad_token_id", None) or 0,
        prompts,
        [type(module).__name__ for module in model],
    )


def cutting_tokenizer(model: SentenceTransformer | CrossEncoder) -> Tokenizer:
    """A model's tokenizer, truncating texts to the model's maximum length."""
    tokenizer = whole_text_tokenizer(model.tokenizer)
    longest = model.max_seq_length
    if longest is not None and math.isfinite(longest):  # no limit in static models
        side = getattr(model.tokenizer, "truncation_side", "right")
        tokenizer.enable_truncation(longest, direction=side)
    return tokenizer


def whole_text_tokenizer(tokenizer: Any) -> Tokenizer:
    """A copy of a tokenizer of transformers, without truncation."""
    from tokenizers import Tokenizer

    backend = tokenizer  # of a static model
    if not isinstance(backend, Tokenizer):
        backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(f"{type(tokenizer).__name__} has no character offsets")
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
