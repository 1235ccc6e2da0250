"""Smooth inverse frequency: lower weights for frequent words; the common component is removed.

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

#: The paper's `a`; 1e-3 to 1e-4 were best on all its data sets.
A = 1e-3


def sif_weights(words: int) -> Vector:
    """The weight a / (a + p) of each rank, the most frequent word first, shape (words,).

    Published vectors are sorted by frequency, but without counts. So the probability of a word is
    estimated from its rank by Zipf's law: p(rank) = 1 / (rank * H), where H, the sum of 1 / rank
    over all words, normalises the probabilities.
    """
    ranks = numpy.arange(1, words + 1, dtype=numpy.float64)
    probabilities = 1 / (ranks * (1 / ranks).sum())
    weights: Vector = A / (A + probabilities)
    return weights


def cached_component(name: str, averages: Callable[[list[str]], Any]) -> Vector:
    """The first principal component of the sample corpus's vectors, uncentred; unit length.

    The paper fits it on each set of sentences. An encoder must return the same vector for a text
    in any context, so here it is fitted once, on the sample corpus.

    Args:
        name: the name of the cache entry, which must determine the averages.
        averages: returns the weighted averages of texts, one row per text.

    Raises:
        EncoderError: no word of the English sample corpus has a vector.
    """

    def fit(folder: Any) -> None:
        matrix = averages(sample_texts())
        if not matrix.any():
            raise EncoderError(
                "no word of the English sample corpus has a vector, so sif cannot be fitted; "
                "leave out @sif"
            )
        numpy.save(folder / "component.npy", numpy.linalg.svd(matrix, full_matrices=False)[2][0])

    component: Vector = numpy.load(cached_entry(name, fit) / "component.npy", allow_pickle=False)
    return component


def sample_sha256() -> str:
    """A hash of the texts on which the component is fitted."""
    return hashlib.sha256("\n".join(sample_texts()).encode()).hexdigest()
