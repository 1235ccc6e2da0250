"""What a model's tokenizer makes of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

TOKENISED_AT_ONCE = 8192


class Tokens(NamedTuple):
    """How many tokens each text has, and which occur."""

    counts: NDArray[numpy.int64]  #: shape (columns, n), cut where the model stops reading
    used: set[int]  #: the ids of all texts together


def tokens_of(model: Any, columns: Sequence[Sequence[str]]) -> Tokens:
    """The tokens of columns of texts, all of the same length.

    Args:
        model: of sentence-transformers.
        columns: the texts.
    """
    texts = [text for column in columns for text in column]
    counts: list[int] = []
    used: set[int] = set()
    for start in range(0, len(texts), TOKENISED_AT_ONCE):
        part = texts[start : start + TOKENISED_AT_ONCE]
        for ids in model.tokenizer(part, verbose=False)["input_ids"]:
            counts.append(len(ids))
            used.update(ids)
    longest = model.max_seq_length or 512
    counted = numpy.minimum(numpy.array(counts, numpy.int64), longest)
    return Tokens(counted.reshape(len(columns), -1), used)
