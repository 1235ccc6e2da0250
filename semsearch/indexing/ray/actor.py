"""What runs on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from semsearch.encoders import load_encoder
from semsearch.errors import ClusterError, SemsearchError
from semsearch.indexing.pool import Encoded, encode_texts
from semsearch.protocols import Encoder
from semsearch.storage.spaces import Space
from semsearch.version import __version__


class EncodingActor:
    """Encodes with the models of some spaces.

    Args:
        version: the version of semsearch that creates it.
        spaces: their models are loaded when needed, also after Ray restarted the actor.
    """

    def __init__(self, version: str, spaces: Sequence[Space]) -> None:
        self._version = version
        self._spaces = spaces

    def encode(self, space: int, texts: Sequence[str]) -> Encoded:
        """The vectors of passages.

        Raises:
            ClusterError: this node has not the same models and version of semsearch.
        """
        return encode_texts(self._encoders[space], texts)

    @cached_property
    def _encoders(self) -> dict[int, Encoder]:
        if self._version != __version__:
            raise ClusterError(f"it has semsearch {__version__}, not {self._version}")
        encoders = {}
        for space in self._spaces:
            try:
                encoder = load_encoder(space.spec, None, space.precision, local_files_only=True)
                encoder.encode_documents(["."])
            except SemsearchError as error:
                raise ClusterError(str(error)) from error
            if encoder.fingerprint != space.fingerprint:
                raise ClusterError(f"its model '{space.spec}' is another one")
            encoders[space.id] = encoder
        return encoders
