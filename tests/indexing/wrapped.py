"""A base class of encoders with faults."""

from __future__ import annotations

from semsearch import load_encoder


class Wrapped:
    """The hashing encoder, for subclasses that change how it encodes."""

    def __init__(self, spec="hashing:16"):
        self._encoder = load_encoder(spec)

    def __getattr__(self, name):
        return getattr(self._encoder, name)
