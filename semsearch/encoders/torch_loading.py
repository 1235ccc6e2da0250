"""Loading models on torch: quietly, whole, and within the number of their positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any

from semsearch.errors import EncoderError, first_line

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

WEIGHTS_SHOWN = 3

#: Held while transformers' loading is patched.
_PATCHING = RLock()

#: Models that number positions from the padding token.
POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet")


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


def is_of_pooler(model: Any, weight: str) -> bool:
    """Whether a weight is a pooler's, which bi-encoders do not use."""
    del model
    return ".pooler." in f".{weight}"


def is_of_head(model: Any, weight: str) -> bool:
    """Whether a weight is not of the transformer itself, or of its pooler."""
    return not weight.startswith(f"{model.base_model_prefix}.") or is_of_pooler(model, weight)


@contextmanager
def complete(
    spec: str, is_spare: Callable[[Any, str], bool] = lambda model, weight: False
) -> Iterator[None]:
    """Refuse a model with missing weights, which transformers fills with random numbers.

    Args:
        spec: names the model in messages.
        is_spare: whether a model of transformers may lack a weight.

    Raises:
        EncoderError: other weights are missing, or have another shape.
    """
    from transformers import PreTrainedModel

    missing: set[str] = set()
    thread = get_ident()

    def from_pretrained(cls: Any, *args: Any, **options: Any) -> Any:
        """Load a model, whose missing weights only this method can return."""
        if get_ident() != thread:  # another model, of the program that imports us
            return load.__func__(cls, *args, **options)
        model, info = load.__func__(cls, *args, **options, output_loading_info=True)
        lacking = {*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}
        missing.update(name for name in lacking if not is_spare(model, name))
        return model

    with _PATCHING:
        load = vars(PreTrainedModel)["from_pretrained"]
        PreTrainedModel.from_pretrained = classmethod(from_pretrained)
        try:
            yield
        finally:
            PreTrainedModel.from_pretrained = load
    if missing:
        listed = ", ".join(sorted(missing)[:WEIGHTS_SHOWN])
        more = ", …" if len(missing) > WEIGHTS_SHOWN else ""
        raise EncoderError(f"model '{spec}' lacks weights: {listed}{more}")


def check_tokenizer(model: SentenceTransformer | CrossEncoder, spec: str) -> None:
    """Refuse a model whose tokenizer is missing or that of another model.

    For a model without a vocabulary, transformers makes an empty tokenizer. Where a token has no
    weights, OpenVINO computes vectors nevertheless.

    Raises:
        EncoderError: the tokenizer knows nothing but special tokens, or more tokens than the
            model has weights for.
    """
    special = getattr(model.tokenizer, "all_special_tokens", None)
    if special is not None and len(model.tokenizer) <= len(special):
        raise EncoderError(f"model '{spec}' has no tokenizer, or one without a vocabulary")
    transformer = getattr(model, "transformers_model", None)
    tokens = getattr(model.tokenizer, "vocab_size", None)  # without added ones, often unused
    if transformer is None or tokens is None:
        return
    rows = len(transformer.get_input_embeddings().weight)
    if tokens > rows:
        raise EncoderError(
            f"model '{spec}' has weights for {rows:,} tokens, but its tokenizer has {tokens:,}: it "
            "is that of another model"
        )


def limit_to_positions(model: SentenceTransformer | CrossEncoder) -> None:
    """Let a model read no more tokens than it has positions for."""
    transformer = getattr(model, "transformers_model", None)
    positions = positions_of(getattr(transformer, "config", None))
    longest = model.max_seq_length
    if positions is not None and longest is not None and longest > positions:
        model.max_seq_length = positions


def positions_of(config: Any) -> int | None:
    """The number of tokens that a transformer has positions for; None if there is no limit."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions is None or not getattr(config, "position_biased_input", True):
        return None  # they are relative
    if config.model_type in POSITIONS_AFTER_PADDING:
        positions -= config.pad_token_id + 1
    return positions


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
