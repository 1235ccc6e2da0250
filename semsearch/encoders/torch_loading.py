"""Loading models on torch: quietly, whole, and with a maximum length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from semsearch.encoders.model_folder import ModelFolder, deciding_files
from semsearch.encoders.specs import Pooling
from semsearch.errors import EncoderError, first_line

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from torch.nn import Module
    from transformers import PreTrainedModel

    Loaded = TypeVar("Loaded", SentenceTransformer, CrossEncoder)

#: The maximum length of texts, with special tokens, for transformers without a limit.
UNLIMITED_LENGTH = 512
#: Tokenizers without a limit have a length of 10^30.
LONGEST = 1_000_000


@contextmanager
def loading(spec: str) -> Iterator[None]:
    """Convert errors of libraries while loading a model, and silence their output."""
    try:
        with quiet_transformers():
            yield
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(f"model '{spec}' cannot be loaded: {first_line(error)}") from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and advice of transformers."""
    from transformers.utils import logging as of_transformers

    verbosity = of_transformers.get_verbosity()
    of_transformers.set_verbosity_error()
    of_transformers.disable_progress_bar()
    try:
        yield
    finally:
        of_transformers.enable_progress_bar()
        of_transformers.set_verbosity(verbosity)


def load_checked(
    load: Callable[..., Loaded],
    folder: ModelFolder,
    device: str | None,
    *,
    attention: str | None,
    dtype: str,
    needs_pooler: bool = False,
) -> Loaded:
    """Load a model and check that it is complete.

    Args:
        load: the class of the model.
        folder: its files.
        device: a torch device; None for a GPU if there is one.
        attention: transformers' implementation of attention; None for its default.
        dtype: the name of a torch number type.
        needs_pooler: whether it uses the pooler of its transformer.

    Raises:
        EncoderError: it cannot be loaded, or weights or the tokenizer are missing.
    """
    with loading(folder.spec):
        model = load(
            str(folder.path),
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={
                "use_safetensors": True,
                "attn_implementation": attention,
                "dtype": dtype,
            },
        )
        check_weights(model, folder, needs_pooler=needs_pooler)
        special = getattr(model.tokenizer, "all_special_tokens", None)
        if special is not None and len(model.tokenizer) <= len(special):  # made by transformers
            raise EncoderError(f"model '{folder.spec}' has no tokenizer")
        if transformers_of(model) and not (model.max_seq_length or LONGEST) < LONGEST:
            model.max_seq_length = UNLIMITED_LENGTH
    return model.eval()


def transformers_of(model: Module) -> list[PreTrainedModel]:
    """The models of transformers inside a model."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    return [module.model for module in model.modules() if isinstance(module, Transformer)]


def check_weights(
    model: SentenceTransformer | CrossEncoder,
    folder: ModelFolder,
    *,
    needs_pooler: bool,
    needs_head: bool = True,
) -> None:
    """Refuse a model with missing weights, which transformers fills with random numbers.

    Transformers lists missing weights only to those who call `from_pretrained` themselves. So it
    is called again, on tensors of the same names and shapes that take no memory.

    Args:
        model: the loaded model.
        folder: its files.
        needs_pooler: whether it uses the pooler of its transformer.
        needs_head: whether it uses the classifier, if it has one; one to be trained may be new.

    Raises:
        EncoderError: weights are missing.
    """
    import torch
    from safetensors import safe_open

    tensors: dict[str, torch.Tensor] = {}
    for file in deciding_files(folder.path):
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as weights:
                shapes = {name: weights.get_slice(name).get_shape() for name in weights.keys()}  # noqa: SIM118
            tensors |= {name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}
    missing: set[str] = set()
    for transformer in transformers_of(model):
        checked = transformer if needs_head else transformer.base_model
        _, report = type(checked).from_pretrained(
            None,
            config=transformer.config,
            state_dict=tensors,
            ignore_mismatched_sizes=True,  # loading the model has refused them
            output_loading_info=True,
        )
        missing |= report["missing_keys"]
    if not needs_pooler:  # most bi-encoders do not use it
        missing = {name for name in missing if ".pooler." not in f".{name}"}
    if missing:
        raise EncoderError(f"model '{folder.spec}' lacks weights: {', '.join(sorted(missing)[:3])}")


def why_not_by_ids(model: SentenceTransformer | CrossEncoder) -> str | None:
    """Why a model needs more than the token ids of texts and a mask; None if it does not."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    first = model[0]
    if not isinstance(first, Transformer):
        return f"it begins with a module {type(first).__name__}, not with a transformer"
    if any(getattr(module, "forward_kwargs", None) for module in model):
        return "its modules treat queries and documents differently"
    if not all(getattr(module, "include_prompt", True) for module in model):
        return "it excludes prompts from pooling"
    if first.processing_kwargs or getattr(model.tokenizer, "backend_tokenizer", None) is None:
        return "its tokenizer is a special one"
    return None


def repooled(model: SentenceTransformer, pooling: Pooling) -> SentenceTransformer:
    """The model's transformer with another pooling, without its other modules and prompts.

    So a plain BERT becomes an encoder, like the untrained rows in Reimers & Gurevych 2019.

    Raises:
        EncoderError: pooler output is requested from a model without a pooler.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = model[0]
    if not isinstance(transformer, modules.Transformer):
        raise EncoderError(
            f"@{pooling.value} needs a transformer, not {type(transformer).__name__}"
        )
    dimension = transformer.get_embedding_dimension()
    if pooling is Pooling.POOLER:
        pooler = getattr(transformer.model, "pooler", None)
        if pooler is None:
            raise EncoderError(f"@pooler: a {transformer.model.config.model_type} has no pooler")
        pooled = _pooler_module(pooler, dimension)
    else:
        pooled = modules.Pooling(dimension, pooling.value)
    return SentenceTransformer(modules=[transformer, pooled], device=str(model.device)).eval()


def _pooler_module(pooler: Module, dimension: int) -> Module:
    """A transformer's pooler as a module of Sentence-Transformers."""
    from torch.nn import Module

    class Pooler(Module):
        pooling_mode = Pooling.POOLER.value

        def __init__(self) -> None:
            super().__init__()
            self.pooler = pooler

        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return features | {"sentence_embedding": self.pooler(features["token_embeddings"])}

        def get_embedding_dimension(self) -> int:
            return dimension

    return Pooler()
