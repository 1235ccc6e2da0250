"""What runs on the nodes of a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from semsearch.corpus.parts import Found, Part, ReadPart, WholeFile, read_elsewhere
from semsearch.encoders import load_encoder
from semsearch.errors import SemsearchError
from semsearch.index.plan import Prepared
from semsearch.index.workers import Encoded, Spans, Written, cut_texts, encode_texts
from semsearch.protocols import Encoder
from semsearch.stores.protocol import Share, ShareAccess, SharedWriter, TextVectors
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
    """Holds models; cuts and encodes with them, and writes to stores that it reaches.

    Args:
        version: of the semsearch that makes it.
        models: those of the spaces; the first one's tokens are counted.
    """

    def __init__(self, version: str, models: Sequence[Model]) -> None:
        self._version = version
        self._models = models
        self._encoders: dict[int, Encoder] = {}
        self._store: SharedWriter | None = None
        self._why = ""  # it cannot be reached

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

    def read(self, part: Part | WholeFile) -> ReadPart | Found:
        """The documents of a part of a corpus, as plain tuples of `Prepared`."""
        found = read_elsewhere(part)
        if isinstance(found, ReadPart):
            return found._replace(documents=[(*Prepared.of(one),) for one in found.documents])
        return found

    def write(self, share: Share) -> Written | Refused:
        """Encode the passages of a share, and write them; return the vectors if that fails."""
        started, texts = time.perf_counter(), share.texts
        vectors: TextVectors = {}
        refused: dict[str, str] = {}
        encoded = []
        store, why = self._reached(share.access)
        if store is not None:
            try:
                vectors = store.vectors_of(list(texts))
            except SemsearchError as error:
                store, why = None, str(error)
        try:
            for space, encoder in self._encoders.items():
                lacking = [digest for digest in texts if (space, digest) not in vectors]
                found = encode_texts(encoder, [texts[digest] for digest in lacking])
                usable = [lacking[place] for place in found.places]
                vectors |= {
                    (space, digest): vector
                    for digest, vector in zip(usable, found.vectors, strict=True)
                }
                refused |= dict.fromkeys(set(lacking).difference(usable), encoder.spec)
                encoded.append(len(lacking))
        except SemsearchError as error:
            return Refused(str(error))
        result = None
        if store is not None:
            try:
                result, vectors = store.write(share, vectors), {}
            except SemsearchError as error:
                why = str(error)
        seconds = time.perf_counter() - started
        return Written(result, vectors, refused, encoded, seconds, why=why)

    def _reached(self, access: ShareAccess) -> tuple[SharedWriter | None, str]:
        """The store, or why it cannot be reached; tried once."""
        if self._store is None and not self._why:
            try:
                self._store = access.open()
                self._store.vectors_of([])  # is it the one?
            except SemsearchError as error:
                self._store, self._why = None, str(error)
        return self._store, self._why
