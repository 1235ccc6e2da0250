"""What runs on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from semsearch.encoders import load_encoder
from semsearch.errors import SemsearchError
from semsearch.index.workers import Encoded, Spans, cut_texts, encode_texts
from semsearch.protocols import Encoder
from semsearch.version import __version__


class Model(NamedTuple):
    """An encoder that nodes load."""

    space: int  #: id of the embedding space
    spec: str
    precision: str
    fingerprint: str


class Refused(NamedTuple):
    """Why an actor refuses. It is returned: not all of our exceptions can be pickled."""

    reason: str


class EncodingActor:
    """Holds models; cuts and encodes with them.

    Args:
        version: of the semsearch that makes it.
        models: those of the spaces; the first one's tokens are counted.
    """

    def __init__(self, version: str, models: Sequence[Model]) -> None:
        self._version = version
        self._models = models
        self._encoders: dict[int, Encoder] = {}

    def prepare(self) -> Refused | None:
        """Load the models."""
        if self._version != __version__:
            return Refused(f"it has semsearch {__version__}, not {self._version}")
        try:
            for model in self._models:
                encoder = load_encoder(model.spec, precision=model.precision, local_files_only=True)
                if encoder.fingerprint != model.fingerprint:
                    return Refused(f"its model '{model.spec}' is another one")
                encoder.encode_documents(["."])
                self._encoders[model.space] = encoder
        except SemsearchError as error:
            return Refused(str(error))
        return None

    def cut(self, texts: Sequence[str], max_tokens: int) -> list[Spans]:
        """Where the passages of documents begin and end."""
        return cut_texts(self._encoders[self._models[0].space], texts, max_tokens)

    def encode(self, space: int, texts: Sequence[str]) -> Encoded | Refused:
        """The vectors of passages."""
        try:
            return encode_texts(self._encoders[space], texts)
        except SemsearchError as error:
            return Refused(str(error))
