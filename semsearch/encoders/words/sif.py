"""Smooth inverse frequency: frequent words count for less, the direction common to all for nothing.

Arora, Liang & Ma (2017), A simple but tough-to-beat baseline for sentence embeddings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.sample import sample_texts
from semsearch.errors import EncoderError

Vector = NDArray[numpy.float64]

#: The paper's `a`: it found 1e-3 to 1e-4 best on all its sets.
A = 1e-3


def sif_weights(words: int) -> Vector:
    """The weight a / (a + p) of each rank, the most frequent word first, shape (words,).

    Published vectors come without counts, but sorted by them. So a word's probability is
    estimated from its rank by Zipf's law: p(rank) = 1 / (rank * H), where H, the sum of 1 / rank
    over all words, makes the probabilities add up to 1.
    """
    ranks = numpy.arange(1, words + 1, dtype=numpy.float64)
    probabilities = 1 / (ranks * (1 / ranks).sum())
    weights: Vector = A / (A + probabilities)
    return weights


def cached_component(name: str, averages: Callable[[list[str]], Any]) -> Vector:
    """The first principal component of the sample corpus's vectors, uncentred; unit length.

    The paper fits it on each set of sentences that it looks at. An encoder must give a text the
    same vector whatever stands beside it, so here it is fitted once, on the texts that come with
    the package.

    Args:
        name: of the entry in the cache; all that decides the averages is in it.
        averages: gives the weighted averages of texts, one row each.

    Raises:
        EncoderError: no word of the sample corpus, which is English, has a vector.
    """

    def fit(folder: Any) -> None:
        matrix = averages(sample_texts())
        if not matrix.any():
            raise EncoderError(
                "no word of the English sample corpus has a vector here, so sif cannot be fitted; "
                "leave out @sif"
            )
        numpy.save(folder / "component.npy", numpy.linalg.svd(matrix, full_matrices=False)[2][0])

    component: Vector = numpy.load(cached_entry(name, fit) / "component.npy", allow_pickle=False)
    return component


def sample_sha256() -> str:
    """Identifies the texts that the component is fitted on."""
    return hashlib.sha256("\n".join(sample_texts()).encode()).hexdigest()
