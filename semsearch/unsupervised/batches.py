"""Batches of texts of like length, so that little is computed for padding."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

Rows = NDArray[numpy.int64]

#: How many batches are sorted by length together; the texts in them are drawn.
WINDOW_BATCHES = 50


def batches_by_length(lengths: Rows, size: int, generator: numpy.random.Generator) -> list[Rows]:
    """All rows once, about `size` in a batch, the batches in random order."""
    order = generator.permutation(len(lengths))
    found: list[Rows] = []
    window = WINDOW_BATCHES * size
    for start in range(0, len(order), window):
        rows = order[start : start + window]
        rows = rows[numpy.argsort(lengths[rows], kind="stable")]
        found += numpy.array_split(rows, max(1, round(len(rows) / size)))
    return [found[place] for place in generator.permutation(len(found))]
