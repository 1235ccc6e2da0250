"""Loading models on torch: quietly, whole, and within the number of their positions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semsearch.errors import DamagedModelError, EncoderError, first_line

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

#: Rows of transformers' report of a loaded model, and weights that need not be there.
_MISSING = re.compile(r"^(\S+) +\| *MISSING", re.MULTILINE)
_SPARE = re.compile(r"(?:^|\.)(?:pooler\.|position_ids$)")

WEIGHTS_SHOWN = 3

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


@contextmanager
def complete(spec: str) -> Iterator[None]:
    """Refuse a model with missing weights, which transformers fills with random numbers.

    Raises:
        DamagedModelError: weights are missing, other than those of a pooler that is not used.
    """
    logger = logging.getLogger("transformers.modeling_utils")
    level, propagates = logger.level, logger.propagate
    report = _Report()
    logger.addHandler(report)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(report)
        logger.setLevel(level)
        logger.propagate = propagates
    if report.missing:
        listed = ", ".join(sorted(report.missing)[:WEIGHTS_SHOWN])
        more = ", …" if len(report.missing) > WEIGHTS_SHOWN else ""
        raise DamagedModelError(f"model '{spec}' lacks weights: {listed}{more}")


class _Report(logging.Handler):
    """Reads the weights that transformers reports as missing."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        names = _MISSING.findall(record.getMessage())
        self.missing += [name for name in names if not _SPARE.search(name)]


def check_tokenizer(model: SentenceTransformer | CrossEncoder, spec: str) -> None:
    """Refuse a model without a vocabulary, for which transformers makes an empty tokenizer.

    Raises:
        DamagedModelError: its tokenizer knows nothing but special tokens.
    """
    special = getattr(model.tokenizer, "all_special_tokens", None)
    if special is not None and len(model.tokenizer) <= len(special):
        raise DamagedModelError(f"model '{spec}' has no tokenizer, or one without a vocabulary")


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
