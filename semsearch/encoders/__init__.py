"""Encoders: what turns texts into vectors. `load_encoder` finds the one that a spec names."""

from semsearch.encoders.loading import DEFAULT_ENCODER, load_encoder

__all__ = ["DEFAULT_ENCODER", "load_encoder"]
