"""Models of Sentence-Transformers on torch, on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semsearch.encoders.batching import Batching
from semsearch.encoders.text_model import INPUTS, Features, ModelFacts, TextModel
from semsearch.errors import EncoderError, first_line
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from tokenizers import Tokenizer

CPU_BATCHING = Batching(1024, 250_000, least_fill=0.9)
GPU_BATCHING = Batching(16_384, 4_000_000, least_fill=0.9)


class TorchRuntime:
    """Runs the modules of a loaded model, one batch after another.

    Args:
        model: with its weights.
        result: what is wanted of what its modules say, shape (texts, dimension).
    """

    #: A batch has the whole device.
    at_once = 1

    def __init__(
        self,
        model: SentenceTransformer | CrossEncoder,
        result: Callable[[dict[str, Any]], Any],
    ) -> None:
        self._model = model
        self._result = result

    @property
    def batching(self) -> Batching:
        """The batches that suit the model's device."""
        return CPU_BATCHING if self._model.device.type == "cpu" else GPU_BATCHING

    def run(self, batches: Iterator[Features]) -> Iterator[Matrix]:
        """What the model says of each batch, in their order: shape (texts, dimension).

        A device works on what it has been given while the next texts are tokenised; only the
        end waits for it.
        """
        found = [self._forward(features) for features in batches]
        yield from (rows.cpu().numpy() for rows in found)

    def run_alone(self, features: Features) -> Matrix:
        """What the model says of one batch: shape (texts, dimension)."""
        rows: Matrix = self._forward(features).cpu().numpy()
        return rows

    def _forward(self, features: Features) -> Any:
        import torch

        with torch.inference_mode():
            inputs: dict[str, Any] = {
                name: torch.from_numpy(array).to(self._model.device, non_blocking=True)
                for name, array in features.items()
            }
            for module in self._model:
                inputs = module(inputs)
            return self._result(inputs).float()


def text_model(
    model: SentenceTransformer | CrossEncoder,
    facts: ModelFacts,
    result: Callable[[dict[str, Any]], Any],
) -> TextModel:
    """A loaded model, ready to read texts."""
    return TextModel(facts, lambda: cutting_tokenizer(model), TorchRuntime(model, result))


def model_facts(
    model: SentenceTransformer | CrossEncoder,
    dimension: int,
    max_tokens: int,
    prompts: dict[str, str],
) -> ModelFacts:
    """What must be known of a loaded model."""
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


def unit_vectors(features: dict[str, Any]) -> Any:
    """What the modules of a bi-encoder say, brought to unit length."""
    from torch.nn.functional import normalize

    return normalize(features["sentence_embedding"].float(), dim=1)


def cutting_tokenizer(model: SentenceTransformer | CrossEncoder) -> Tokenizer:
    """A model's own tokenizer, which cuts off what the model does not read."""
    tokenizer = whole_text_tokenizer(model.tokenizer)
    tokenizer.enable_truncation(model.max_seq_length)
    return tokenizer


def whole_text_tokenizer(tokenizer: Any) -> Tokenizer:
    """A copy of one of transformers' tokenizers that cuts nothing off."""
    from tokenizers import Tokenizer

    backend = tokenizer  # a static model's
    if not isinstance(backend, Tokenizer):
        backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(f"{type(tokenizer).__name__} has no character offsets")
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
