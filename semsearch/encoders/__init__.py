"""Encoders: what turns texts into vectors. `load_encoder` finds the one that a spec names."""

from semsearch.encoders.loading import (
    DEFAULT_ENCODER,
    current_fingerprint,
    load_encoder,
    load_reranker,
)
from semsearch.encoders.sentences import EncodesSentences
from semsearch.encoders.specs import CROSS_ENCODER_PREFIX

__all__ = [
    "CROSS_ENCODER_PREFIX",
    "DEFAULT_ENCODER",
    "EncodesSentences",
    "current_fingerprint",
    "load_encoder",
    "load_reranker",
]
