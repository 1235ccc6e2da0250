"""What runs on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from semsearch.encoders import load_encoder
from semsearch.errors import ClusterError, SemsearchError
from semsearch.index.pool import Encoded, encode_texts
from semsearch.protocols import Encoder
from semsearch.version import __version__


class Model(NamedTuple):
    """An encoder that nodes load."""

    space: int  #: id of the embedding space
    spec: str
    precision: str
    fingerprint: str


class EncodingActor:
    """Encodes with the models of some spaces; Ray may restart it at any time.

    Args:
        version: the version of semsearch that created it.
        models: the models to load.
    """

    def __init__(self, version: str, models: Sequence[Model]) -> None:
        self._version = version
        self._models = models

    def fault(self) -> str:
        """Load the models; returns why this node cannot encode, or an empty string."""
        try:
            self._encoders  # noqa: B018 - loads them
        except SemsearchError as error:
            return str(error)
        return ""

    def encode(self, space: int, texts: Sequence[str]) -> Encoded:
        """The vectors of passages.

        Raises:
            ClusterError: this node cannot encode them.
        """
        try:
            return encode_texts(self._encoders[space], texts)
        except SemsearchError as error:  # not all of our exceptions can be pickled
            raise ClusterError(str(error)) from None

    @cached_property
    def _encoders(self) -> dict[int, Encoder]:
        if self._version != __version__:
            raise ClusterError(f"it has semsearch {__version__}, not {self._version}")
        encoders = {}
        for model in self._models:
            encoder = load_encoder(model.spec, precision=model.precision, local_files_only=True)
            if encoder.fingerprint != model.fingerprint:
                raise ClusterError(f"its model '{model.spec}' is another one")
            encoder.encode_documents(["."])
            encoders[model.space] = encoder
        return encoders
