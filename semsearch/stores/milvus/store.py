"""An index on Milvus: its collections, and who may write them."""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from semsearch.encoders.cache import cache_folder
from semsearch.errors import IndexBusyError, IndexNotFoundError, IndexStoreError
from semsearch.protocols import Encoder
from semsearch.stores.lock import writer_lock
from semsearch.stores.milvus.catalogue import (
    Bm25,
    first_properties,
    not_found,
    read_catalogue,
    write_catalogue,
)
from semsearch.stores.milvus.collections import (
    documents_collection,
    make,
    passages_collection,
    vectors_collection,
    words_collections,
)
from semsearch.stores.milvus.connection import Connection, target
from semsearch.stores.milvus.run import Run
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.writer import MilvusWriter
from semsearch.stores.protocol import Space, Store, closed_on_error, described_space

logger = logging.getLogger(__name__)

#: For how long a writer on another machine that commits nothing is taken to be alive.
LEASE_SECONDS = 600
WAIT_SECONDS = 2


class MilvusStore:
    """Collections of Milvus; see `semsearch.stores.protocol.Store`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._run = Run()

    @property
    def path(self) -> Path:
        """The address."""
        return cast("Path", self._connection.target.address)

    @contextmanager
    def read(self) -> Iterator[MilvusState]:
        """What is committed by now."""
        yield self._state()

    @contextmanager
    def writer(self, *, wait: float = 0) -> Iterator[MilvusWriter]:
        """The right to write; one process at a time has it.

        Milvus has no locks: processes of one machine are kept apart by a file, those of several by
        a note in the index, which two that begin in the same moment can miss.
        """
        with writer_lock(_lock_folder(self._connection), wait=wait, index=self.path):
            token = self._take_lease(wait=wait)
            writer = MilvusWriter(self._connection, self._state, token)
            try:
                writer.recover()
                yield writer
            finally:
                writer.close()

    def close(self) -> None:
        """Close the connection."""
        self._run.close()
        self._connection.close()

    def _state(self) -> MilvusState:
        return MilvusState(self._connection, read_catalogue(self._connection), self._run)

    def _take_lease(self, *, wait: float) -> dict[str, str | float]:
        """Record in the index who is writing.

        Raises:
            IndexBusyError: a process on another machine is writing it, or one of another user.
        """
        warned = False
        deadline = time.monotonic() + wait
        while True:
            held = read_catalogue(self._connection).writer
            if not self._is_elsewhere(held) or time.time() - held.get("seen", 0) > LEASE_SECONDS:
                break
            busy = (
                f"{self.path} is being written by process {held.get('process')} on "
                f"{held.get('host')} since {held.get('since')}"
            )
            if time.monotonic() >= deadline:
                raise IndexBusyError(busy, can_wait=True)
            if not warned:
                logger.warning("%s; waiting for it", busy)
                warned = True
            time.sleep(WAIT_SECONDS)
        token: dict[str, str | float] = {
            "token": uuid4().hex,
            "host": platform.node(),
            "lock": str(_lock_folder(self._connection)),
            "process": os.getpid(),
            "since": datetime.now().astimezone().isoformat(" ", "seconds"),
            "seen": time.time(),
        }
        write_catalogue(self._connection, writer=token)
        return token

    def _is_elsewhere(self, held: Mapping[str, Any]) -> bool:
        """Whether a note names a writer that the lock here does not keep out."""
        if held.get("host", platform.node()) != platform.node():
            return True
        lock = str(_lock_folder(self._connection))
        return held.get("lock", lock) != lock and _is_running(held["process"])


def _lock_folder(connection: Connection) -> Path:
    target = connection.target
    name = blake2b(f"{target.uri}/{target.name}".encode(), digest_size=16).hexdigest()
    folder = cache_folder() / "milvus" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IndexStoreError(f"cannot write in {folder}: {error.strerror}") from error
    return folder


def _is_running(process: int) -> bool:
    if os.name == "posix":  # Windows would send it a signal
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's
            pass
    return True


def open_store(path: Path) -> Store:
    """The index at an address; see `semsearch.stores.protocol.StoreModule`."""
    found = target(path)
    if found.is_file and not Path(found.uri).exists():  # milvus-lite would create it
        raise not_found(found.address)
    connection = Connection(found)
    with closed_on_error(connection):
        read_catalogue(connection)
        return MilvusStore(connection)


def create_store(
    path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
) -> Store:
    """The index at an address, created with a space for each encoder if there is none."""
    try:
        return open_store(path)
    except IndexNotFoundError:
        connection = Connection(target(path))
    with closed_on_error(connection), writer_lock(_lock_folder(connection), index=path):
        if connection.has(connection.name):  # it was created meanwhile
            read_catalogue(connection)
            return MilvusStore(connection)
        spaces: list[Space] = []
        for encoder in encoders:
            spaces.append(described_space(encoder, dtype, spaces, complete=True))
        bm25 = Bm25.READY if connection.has_sparse_vectors else Bm25.NONE
        parts = [passages_collection(connection)]
        parts += [vectors_collection(connection, space) for space in spaces]
        if bm25 is Bm25.READY:
            parts += words_collections(connection)
        make(connection, parts)
        # With the documents, there is an index; another machine may have created it meanwhile.
        if not connection.has(connection.name):
            properties = first_properties(max_tokens, spaces, bm25)
            make(connection, [documents_collection(connection)], properties)
        return MilvusStore(connection)
