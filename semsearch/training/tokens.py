"""How long texts are for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

__all__ = ["token_counts"]

COUNTED_AT_ONCE = 8192


def token_counts(model: Any, texts: Sequence[str]) -> NDArray[numpy.int64]:
    """The tokens of each text as the model reads it, cut where it stops reading.

    Args:
        model: of sentence-transformers.
        texts: any number.
    """
    tokenizer = model.tokenizer
    counts: list[int] = []
    for start in range(0, len(texts), COUNTED_AT_ONCE):
        part = list(texts[start : start + COUNTED_AT_ONCE])
        counts += map(len, tokenizer(part, verbose=False)["input_ids"])
    return numpy.minimum(numpy.array(counts, numpy.int64), model.max_seq_length or 512)
