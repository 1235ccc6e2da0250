"""Systems that score the similarity of two sentences: bi-encoders and cross-encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy

from semsearch.encoders import CROSS_ENCODER_PREFIX, load_encoder, load_reranker
from semsearch.encoders.specs import Precision, computed_precision
from semsearch.errors import ArgumentError, check_items, check_text
from semsearch.protocols import Encoder, Scores

#: Called with a system, the items that it processes, how many are done, and of how many.
OnProgress = Callable[[str, str, int, int], None]

SCORE_DECIMALS = 6


class PairScorer(Protocol):
    """Protocol of systems that score pairs of sentences, such as `Reranker`."""

    @property
    def spec(self) -> str:
        """The name of the system."""

    @property
    def precision(self) -> str | None:
        """The number format of its computations; None if there is no choice."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """A score for each pair, higher is more similar, shape (len(pairs),)."""


def check_systems(name: str, systems: Sequence[Any]) -> list[Any]:
    """The systems to evaluate, as a list; raises ArgumentError if two have the same name."""
    systems = check_items(name, systems, "systems")
    specs = [system.spec for system in systems]
    if twice := [spec for spec in specs if specs.count(spec) > 1]:
        raise ArgumentError(f"two systems are named '{twice[0]}'")
    return systems


class CosineScorer:
    """Scores a pair by the cosine of the two sentence vectors of a bi-encoder.

    Args:
        encoder: encodes each distinct sentence once, as a document: with the model's prompt for
            documents, if it has one.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def spec(self) -> str:
        """The spec of the encoder."""
        return self.encoder.spec

    @property
    def precision(self) -> str | None:
        """The precision of the encoder; with ``int8``, that of documents."""
        return computed_precision(self.encoder)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """The cosine of each pair, rounded so that equal ones are tied, shape (len(pairs),)."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        matrix = self.encoder.encode_documents(texts)
        rows = {text: row for row, text in enumerate(texts)}
        left = matrix[[rows[left] for left, _ in pairs]]
        right = matrix[[rows[right] for _, right in pairs]]
        cosines = numpy.multiply(left, right, dtype=numpy.float64).sum(axis=1)
        scores: Scores = numpy.clip(cosines.round(SCORE_DECIMALS), -1, 1).astype(numpy.float32)
        return scores


def load_pair_scorer(spec: str, precision: Precision | str = Precision.FP32) -> PairScorer:
    """Load an encoder, or ``cross-encoder:MODEL``.

    Args:
        spec: the name of the system.
        precision: ``auto``, ``fp32``, ``bf16`` or ``int8``.

    Raises:
        ArgumentError: the system ranks documents and cannot score pairs.
        EncoderError: the model cannot be loaded.
    """
    check_text("the system", spec)
    if spec == "bm25" or spec.startswith("hybrid:"):
        raise ArgumentError(
            f"'{spec}' ranks documents and cannot score pairs of sentences; use an encoder or "
            f"{CROSS_ENCODER_PREFIX}MODEL"
        )
    if spec.startswith(CROSS_ENCODER_PREFIX):
        return load_reranker(spec, precision=precision)
    return CosineScorer(load_encoder(spec, precision=precision))
