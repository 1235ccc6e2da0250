"""Writing the rows of an index from other machines.

The one writer of an index numbers rows and commits them; passages and vectors may be written from
elsewhere in between. Whoever writes them reads in the index that this writer still holds it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from semsearch.addresses import place
from semsearch.errors import IndexBusyError
from semsearch.stores.milvus.catalogue import read_catalogue
from semsearch.stores.milvus.connection import (
    AUTHORITY,
    TIMEOUT,
    TLS,
    TOKEN,
    Connection,
    target,
    timeout_seconds,
)
from semsearch.stores.milvus.rows import Rows, write_rows
from semsearch.stores.milvus.run import Run
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.words import WordCounts
from semsearch.stores.protocol import TextVectors

#: For how long another machine tries to reach Milvus before it leaves writing to the command.
REACH_SECONDS = 5.0


class Access(NamedTuple):
    """What a process on another machine needs to write; picklable."""

    address: str
    environment: dict[str, str]  #: the variables that concern Milvus
    authority: bytes  #: the certificate (PEM) that one of them names; empty without
    lease: str  #: the token of the writer

    @classmethod
    def of(cls, connection: Connection, lease: str) -> Access:
        """The access that this process has."""
        names = (TOKEN, TLS, TIMEOUT)
        environment = {name: os.environ[name] for name in names if name in os.environ}
        authority = os.environ.get(AUTHORITY)
        certificate = Path(authority).read_bytes() if authority else b""
        return cls(str(connection.target.address), environment, certificate, lease)

    def open(self) -> SharedWriter:
        """Connect from a process that serves nothing else: its environment is changed.

        Raises:
            IndexStoreError: Milvus cannot be reached from here, or has no such index.
            IndexBusyError: the index here is another one, or has another writer by now.
        """
        os.environ.update(self.environment)
        with ExitStack() as stack:
            if self.authority:
                folder = stack.enter_context(TemporaryDirectory(prefix="semsearch-"))
                certificate = Path(folder, "authority.pem")
                certificate.write_bytes(self.authority)
                os.environ[AUTHORITY] = str(certificate)
            connection = Connection(target(place(self.address)), REACH_SECONDS)
            stack.callback(connection.close)
            connection.timeout = timeout_seconds()
            return SharedWriter(connection, self.lease, stack.pop_all())


class Share(NamedTuple):
    """Passages and vectors to be written; picklable."""

    access: Access
    rows: Rows

    @property
    def texts(self) -> dict[str, str]:
        """The texts of passages by their hashes."""
        return self.rows.texts


class SharedWriter:
    """Writes passages and vectors for the writer of an index.

    Args:
        connection: to Milvus.
        lease: the token of that writer.
        opened: what `close` closes.
    """

    def __init__(self, connection: Connection, lease: str, opened: ExitStack) -> None:
        self._connection = connection
        self._lease = lease
        self._opened = opened
        self._run = Run()

    def close(self) -> None:
        """Close the connection."""
        self._run.close()
        self._opened.close()

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The vectors that the index has for texts."""
        return self._state().vectors_of(hashes)

    def write(self, share: Share, vectors: TextVectors) -> WordCounts:
        """Write passages and vectors; documents with a passage without a vector are left out."""
        return write_rows(self._connection, self._state(), share.rows, vectors)

    def _state(self) -> MilvusState:
        catalogue = read_catalogue(self._connection)
        if catalogue.writer.get("token") != self._lease:
            raise IndexBusyError("the index there is not the one that this command writes")
        return MilvusState(self._connection, catalogue, self._run)
