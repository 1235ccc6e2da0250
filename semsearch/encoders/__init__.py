"""Encoders: what turns texts into vectors. `load_encoder` finds the one that a spec names."""

from semsearch.encoders.cross_encoder import CROSS_ENCODER_PREFIX
from semsearch.encoders.loading import DEFAULT_ENCODER, load_encoder, load_reranker

__all__ = ["CROSS_ENCODER_PREFIX", "DEFAULT_ENCODER", "load_encoder", "load_reranker"]
