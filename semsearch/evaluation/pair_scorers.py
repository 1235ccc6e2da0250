"""Systems that say how similar two sentences are: bi-encoders by cosine, and cross-encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy

from semsearch.arguments import check_text
from semsearch.encoders import CROSS_ENCODER_PREFIX, load_encoder, load_reranker
from semsearch.encoders.specs import Precision, computed_precision
from semsearch.errors import CombinationError
from semsearch.protocols import Encoder, Scores


class PairScorer(Protocol):
    """Anything that scores pairs of sentences; a `Reranker` does."""

    @property
    def spec(self) -> str:
        """What it is called."""

    @property
    def precision(self) -> str | None:
        """In which numbers it computes; None where there is no choice."""

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair, higher is more similar, shape (len(pairs),)."""


class CosineScorer:
    """A bi-encoder: the cosine of the two sentences' vectors.

    Args:
        encoder: both sentences are encoded as documents, each distinct one once.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def spec(self) -> str:
        """The encoder's."""
        return self.encoder.spec

    @property
    def precision(self) -> str | None:
        """The encoder's, which for ``int8`` is that of documents."""
        return computed_precision(self.encoder)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """The cosine of each pair, shape (len(pairs),)."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        matrix = self.encoder.encode_documents(texts)
        place = {text: row for row, text in enumerate(texts)}
        left = matrix[[place[left] for left, _ in pairs]]
        right = matrix[[place[right] for _, right in pairs]]
        cosines: Scores = numpy.einsum("ij,ij->i", left, right)
        return cosines


def load_pair_scorer(spec: str, precision: Precision | str = Precision.FP32) -> PairScorer:
    """The system of that name: an encoder, or ``cross-encoder:MODEL``.

    Args:
        spec: its name.
        precision: in which numbers it computes: ``auto``, ``fp32``, ``bf16`` or ``int8``.

    Raises:
        ArgumentError: it is a name of something that ranks documents and scores no pairs.
        EncoderError: it cannot be loaded.
    """
    check_text("the system", spec)
    if spec == "bm25" or spec.startswith("hybrid:"):
        raise CombinationError(
            f"'{spec}' ranks the documents of a collection; two sentences are scored by an encoder "
            f"or {CROSS_ENCODER_PREFIX}MODEL"
        )
    if spec.startswith(CROSS_ENCODER_PREFIX):
        return load_reranker(spec, precision=precision)
    return CosineScorer(load_encoder(spec, precision=precision))
