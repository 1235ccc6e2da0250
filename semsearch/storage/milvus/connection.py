"""The connection to a Milvus server or to a file of milvus-lite."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from semsearch.errors import (
    ArgumentError,
    IndexBusyError,
    IndexNotFoundError,
    IndexStoreError,
    MissingExtraError,
    StoreUnreachableError,
    first_line,
)
from semsearch.storage.address import Address
from semsearch.storage.milvus.conditions import all_of, one_of
from semsearch.storage.spaces import Space

#: Environment variables: a token (``user:password``), and TLS (``1``).
TOKEN, TLS = "SEMSEARCH_MILVUS_TOKEN", "SEMSEARCH_MILVUS_TLS"

#: For how long a request is retried.
TIMEOUT_SECONDS = 30.0

#: How many rows are written at once, and how many ids a condition lists: servers accept 64 MiB and
#: answer up to 100 MB, and a text has up to 64 KiB.
ROWS_AT_ONCE, IDS_AT_ONCE = 200, 1000

#: Each request sees what this process has written. A `LATEST` one also waits until it sees what
#: others have, on a server for 0.2 seconds.
READING, LATEST = {"consistency_level": "Session"}, {"consistency_level": "Strong"}

#: The code of the error that a collection is not in memory, and messages of servers that start.
_NOT_LOADED = 101
_PASSING = re.compile(
    r"call load\(\)|not (fully )?loaded|no available|unavailable|"
    r"(shard|channel|leader|node).*not found|not found.*(shard|channel|leader|node)",
    re.IGNORECASE,
)
PAUSE_SECONDS = 0.2

#: Names of indexes; those of collections have up to 20 more characters.
_NAME = "([A-Za-z_][A-Za-z0-9_]{0,200})"
_IN_FILE = re.compile(rf"(.+\.db)/{_NAME}")
_ON_SERVER = re.compile(rf"/((?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?)/{_NAME}")

_users: Counter[str] = Counter()  # open connections of this process by file of milvus-lite
_users_lock = Lock()

Row = dict[str, Any]


class Target(NamedTuple):
    """What an address names."""

    address: Address
    uri: str  #: of the server, or the real path of the file
    name: str  #: of the index, and of its collection of documents
    is_file: bool

    def passages(self, space: Space) -> str:
        """The collection of passages with their vectors in a space."""
        return f"{self.name}_space_{space.id}"

    def not_found(self) -> IndexNotFoundError:
        """The error that there is no index."""
        make = f"semsearch index CORPUS --index {self.address}"
        return IndexNotFoundError(f"no index at {self.address}; make one with: {make}")


def target(path: Path) -> Target:
    """What an address names.

    Raises:
        ArgumentError: it is no address of Milvus.
    """
    address = path if isinstance(path, Address) else Address(path)
    is_file = address.engine == "milvus-lite"
    parsed = (_IN_FILE if is_file else _ON_SERVER).fullmatch(address.rest)
    if not parsed:
        raise ArgumentError(
            f"{address}: write milvus://HOST:PORT/NAME or milvus-lite:///FOLDER/FILE.db/NAME, with "
            "a name of up to 200 letters, digits and _, not starting with a digit"
        )
    where, name = parsed.groups()
    scheme = "http" if os.environ.get(TLS, "") in ("", "0") else "https"
    uri = os.path.realpath(where) if is_file else f"{scheme}://{where}"
    return Target(address, uri, name, is_file)


class Connection:
    """Requests to Milvus, which are retried while a server starts.

    Raises:
        MissingExtraError: the client is not installed.
        StoreUnreachableError: nothing answers there, or access is refused.
    """

    def __init__(self, target: Target) -> None:
        for package in ("pymilvus", "milvus_lite")[: 1 + target.is_file]:
            if find_spec(package) is None:
                raise MissingExtraError(package.replace("_", "-"), "milvus", "an index on Milvus")
        self.target = target
        self.timeout = TIMEOUT_SECONDS
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it logs each failing handshake
        self._client: Any = self._open()
        self.version = str(self.call("get_server_version"))

    @property
    def has_bm25(self) -> bool:
        """Whether it has the function BM25: milvus-lite has, and servers from 2.5 on."""
        version = [int(part) for part in re.findall(r"\d+", self.version)[:2]]
        return self.target.is_file or version >= [2, 5]

    def close(self) -> None:
        """Close it; a file of milvus-lite once nothing else in this process uses it."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
            if self.target.is_file:
                from milvus_lite.server_manager import server_manager_instance

                with _users_lock:
                    _users[self.target.uri] -= 1
                    if not _users[self.target.uri]:
                        server_manager_instance.release_server(self.target.uri)

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """The result of a method of the client.

        Raises:
            IndexStoreError: it fails, or `close` was called.
        """
        import grpc
        from pymilvus import MilvusException

        if self._client is None:
            raise IndexStoreError(f"the index {self.target.address} is closed")
        until, is_loaded = time.monotonic() + self.timeout, True
        while True:
            try:
                if not is_loaded:
                    self._client.load_collection(args[0], timeout=self.timeout)
                return getattr(self._client, method)(*args, timeout=self.timeout, **options)
            except (MilvusException, grpc.RpcError) as error:
                if not _PASSING.search(str(error)) or time.monotonic() > until:
                    raise self._explained(error) from error
                is_loaded = getattr(error, "code", None) != _NOT_LOADED
            if is_loaded:
                time.sleep(PAUSE_SECONDS)

    def query(
        self,
        collection: str,
        condition: str,
        fields: Iterable[str],
        reading: dict[str, str] = READING,
    ) -> list[Row]:
        """The rows that match a condition, in any order."""
        rows = self.call(
            "query", collection, filter=condition, output_fields=list(fields), **reading
        )
        return [dict(row) for row in rows]

    def listed(
        self,
        collection: str,
        key: str,
        values: Iterable[Any],
        fields: Iterable[str],
        rest: str = "",
    ) -> Iterator[Row]:
        """The rows with one of these values in a field, which match the `rest` of a condition."""
        wanted = sorted(set(values))
        for start in range(0, len(wanted), IDS_AT_ONCE):
            condition = all_of(one_of(key, wanted[start : start + IDS_AT_ONCE]), rest)
            yield from self.query(collection, condition, {key, *fields})

    def upsert(self, collection: str, rows: Iterable[Row]) -> None:
        """Write rows; they replace those with the same primary keys."""
        rows = list(rows)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            self.call("upsert", collection, rows[start : start + ROWS_AT_ONCE])

    def delete(self, collection: str, key: str, values: Sequence[int] | Sequence[str]) -> None:
        """Delete rows by their primary keys."""
        for start in range(0, len(values), ROWS_AT_ONCE):
            condition = one_of(key, values[start : start + ROWS_AT_ONCE])
            self.call("delete", collection, filter=condition)

    def _open(self) -> Any:
        from pymilvus import MilvusClient, MilvusException

        for name in ("pymilvus", "milvus_lite"):  # both log each error with its traceback
            logging.getLogger(name).setLevel(logging.CRITICAL)
        uri = self.target.uri
        if not self.target.is_file:
            token = os.environ.get(TOKEN, "")
            try:
                return MilvusClient(uri, token=token, timeout=self.timeout, dedicated=True)
            except MilvusException as error:
                raise self._explained(error, is_connecting=True) from error
        if not Path(uri).parent.is_dir():
            raise IndexStoreError(f"{self.target.address}: there is no such folder")
        with _users_lock:
            try:
                client = MilvusClient(uri, timeout=self.timeout)
            except MilvusException as error:
                raise IndexBusyError(
                    f"{uri} cannot be opened: another process uses it, or it is no file of "
                    "milvus-lite; milvus-lite serves one process at a time"
                ) from error
            _users[uri] += 1
            return client

    def _explained(self, error: Exception, *, is_connecting: bool = False) -> IndexStoreError:
        reason = first_line(Exception(getattr(error, "message", error)))
        message = f"Milvus at {self.target.uri}, for {self.target.address}: {reason}"
        if is_connecting or re.search("unavailable|deadline|timeout|auth", reason, re.IGNORECASE):
            return StoreUnreachableError(f"{message} (see {TOKEN} and {TLS})")
        return IndexStoreError(message)
