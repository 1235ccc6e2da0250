"""The connection to a Milvus server or to a file of milvus-lite: addresses, retries, errors."""

from __future__ import annotations

import logging
import math
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from semsearch.addresses import Address
from semsearch.errors import (
    ArgumentError,
    IndexBusyError,
    IndexClosedError,
    IndexStoreError,
    MissingExtraError,
    StoreUnreachableError,
    first_line,
)

#: What the environment sets: a token (``user:password``), TLS (``1``), the file of a certificate
#: authority, and for how many seconds a request that fails is tried again.
TOKEN, TLS, AUTHORITY, TIMEOUT = (
    f"SEMSEARCH_MILVUS_{name}" for name in ("TOKEN", "TLS", "CA", "TIMEOUT")
)
TIMEOUT_SECONDS = 30.0

#: The longest wait between two tries.
MAX_PAUSE_SECONDS = 2.0

#: A request of this size is far below the 64 MiB that a server takes.
REQUEST_BYTES, REQUEST_ROWS = 8 << 20, 500
#: The most rows that a server returns for one query vector.
MAX_FOUND = 16_384

#: The version of a server from which on it has sparse vectors that are fit for use.
SPARSE_VECTORS = (2, 5)

#: Errors that another try does not change: wrong requests, what does not exist, no right.
_PERMANENT = {4, 5, 6, 100, 200, 700, 1100, 1400, 1401, 65535}
#: Of a collection whose vectors are not in memory.
_NOT_LOADED = 101
#: What servers say under an error's general code while they start or lose a node.
_PASSING = re.compile(
    r"not (fully )?loaded|not ready|no available|not healthy|unavailable|offline|recovering|"
    r"not found.*(shard|channel|leader|node)|(shard|channel|leader|node).*not found|"
    r"connection|deadline|timeout|timed out|context canceled|failed to (search|query)",
    re.IGNORECASE,
)

#: How gRPC describes a token or a right, or a certificate, that is refused.
_REFUSED = re.compile(
    r"StatusCode\.(?:UNAUTHENTICATED|PERMISSION_DENIED)\s+details = \"(.*)\"|"
    r"[Hh]andshake failed .*OPENSSL_internal:(\w+)"
)

#: Names of collections; ours get up to 20 characters behind them.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")

_users: Counter[str] = Counter()  # of files of milvus-lite, in this process
_users_lock = Lock()

Row = dict[str, Any]


class Target(NamedTuple):
    """What an address names."""

    address: Address
    uri: str  #: of the server, or the file, however its path was written
    name: str  #: of the index
    is_file: bool


def target(path: Path) -> Target:
    """What an address names.

    Raises:
        ArgumentError: it is no address of Milvus.
    """
    address = path if isinstance(path, Address) else Address(path)
    where, _, name = address.rest.rpartition("/")
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"{address}: an index on Milvus is named by up to 200 letters, digits and _, not "
            f"starting with a digit"
        )
    if address.engine == "milvus-lite":
        if not where.endswith(".db"):
            raise ArgumentError(f"{address}: write milvus-lite:///FOLDER/FILE.db/NAME")
        return Target(address, os.path.realpath(where), name, is_file=True)
    host = re.fullmatch(r"/((?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?)", where)
    if not host or int(host[2] or 1) not in range(1, 1 << 16):
        raise ArgumentError(f"{address}: write milvus://HOST:PORT/NAME")
    secure = os.environ.get(TLS, "") not in ("", "0") or bool(os.environ.get(AUTHORITY))
    return Target(address, f"{'https' if secure else 'http'}://{host[1]}", name, is_file=False)


class Connection:
    """Requests to Milvus, tried again while they may succeed.

    Args:
        target: where to.

    Raises:
        MissingExtraError: the client is not installed.
        IndexStoreError: nothing answers there.
    """

    def __init__(self, target: Target) -> None:
        for package in ("pymilvus", "milvus_lite")[: 1 + target.is_file]:
            if find_spec(package) is None:
                raise MissingExtraError(package.replace("_", "-"), "milvus", "an index on Milvus")
        self.target = target
        self.timeout = timeout_seconds()
        self._opened: Any = self._connect()
        self.version = str(self.call("get_server_version"))

    @property
    def has_sparse_vectors(self) -> bool:
        """Whether it can search the sparse vectors of BM25."""
        version = re.match(r"v?(\d+)\.(\d+)", self.version)
        return self.target.is_file or (
            version is not None and (int(version[1]), int(version[2])) >= SPARSE_VECTORS
        )

    @property
    def name(self) -> str:
        """Of the collection of documents, with which the names of the others begin."""
        return self.target.name

    def close(self) -> None:
        """Close it; a file of milvus-lite once nothing else in this process uses it."""
        client, self._opened = self._opened, None
        if client is None:
            return
        client.close()
        if self.target.is_file:
            _release(self.target.uri)

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """What a method of the client returns, tried again for as long as `timeout` says.

        Raises:
            IndexStoreError: it fails for good.
            IndexClosedError: `close` was called.
        """
        if self._opened is None:
            raise IndexClosedError(f"the index {self.target.address} is closed")
        return self._tried(getattr(self._opened, method), *args, **options)

    def now(self) -> int:
        """The server's time; 0 for milvus-lite, which has none.

        A request that waits for it sees what was written before. The client's "strong" level takes
        the time of the request instead, and waits a fifth of a second for each.
        """
        if self.target.is_file:
            return 0
        return int(self._tried(self._opened._get_connection().alloc_timestamp))

    def has(self, collection: str) -> bool:
        """Whether there is a collection of a name."""
        return bool(self.call("has_collection", collection))

    def upsert(self, collection: str, rows: Iterable[Row]) -> None:
        """Write rows, instead of those of the same primary keys."""
        for some in _in_requests(rows):
            self.call("upsert", collection, some)

    def delete(self, collection: str, keys: Sequence[int] | Sequence[str]) -> None:
        """Delete rows by their primary keys."""
        for start in range(0, len(keys), MAX_FOUND // 4):
            self.call("delete", collection, ids=list(keys[start : start + MAX_FOUND // 4]))

    def query(
        self, collection: str, condition: str, fields: Sequence[str], since: int
    ) -> list[Row]:
        """The rows that meet a condition, in any order.

        Args:
            collection: which collection.
            condition: an expression of Milvus'.
            fields: of the rows.
            since: what was written up to this time is there; 0 for all that is written by now.
        """
        found = self.call(
            "query", collection, filter=condition, output_fields=list(fields), **_reading(since)
        )
        return [dict(row) for row in found]

    def count(self, collection: str, condition: str, since: int) -> int:
        """How many rows meet a condition."""
        [row] = self.query(collection, condition, ["count(*)"], since)
        return int(row["count(*)"])

    def search(
        self,
        collection: str,
        queries: Any,
        limit: int,
        condition: str,
        fields: Sequence[str],
        since: int,
        metric: str,
        parameters: Mapping[str, Any],
    ) -> list[list[tuple[float, Row]]]:
        """The rows nearest to each query, with their scores, best first."""
        found = self.call(
            "search",
            collection,
            data=list(queries),
            limit=limit,
            filter=condition,
            output_fields=list(fields),
            search_params={"metric_type": metric, "params": dict(parameters)},
            anns_field="vector",
            **_reading(since),
        )
        return [
            [(float(hit["distance"]), {**hit["entity"], "row": hit.id}) for hit in hits]
            for hits in found
        ]

    def _connect(self) -> Any:
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it logs each handshake that fails
        from pymilvus import MilvusClient, MilvusException

        for name in ("pymilvus", "milvus_lite"):  # both log each error with its traceback
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if not self.target.is_file:
            # One of its own: the client shares connections without regard to their certificates.
            options = {"token": os.environ.get(TOKEN, ""), "dedicated": True, **_authority()}
            return self._tried(MilvusClient, uri=self.target.uri, **options)
        folder = Path(self.target.uri).parent
        if not folder.is_dir():
            raise IndexStoreError(f"{self.target.address}: there is no folder {folder}")
        with _users_lock:
            try:
                client = MilvusClient(uri=self.target.uri, timeout=self.timeout)
            except MilvusException as error:
                raise IndexBusyError(
                    f"{self.target.uri} cannot be opened: another process uses it, or it is no "
                    "file of milvus-lite; milvus-lite serves one process at a time"
                ) from error
            _users[self.target.uri] += 1
            return client

    def _tried(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        from pymilvus import MilvusException

        until, pause, is_loaded = time.monotonic() + self.timeout, 0.05, True
        while True:
            left = max(until - time.monotonic(), 0.5)
            try:
                if not is_loaded:
                    self._opened.load_collection(args[0], timeout=left)
                return method(*args, timeout=left, **options)
            except MilvusException as error:
                if not _may_pass(error) or time.monotonic() + pause > until:
                    raise self._explained(error) from error
                is_loaded = error.code != _NOT_LOADED
            except _rpc_errors() as error:
                if _REFUSED.search(str(error)) or time.monotonic() + pause > until:
                    raise self._explained(error) from error
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def _explained(self, error: Exception) -> IndexStoreError:
        reason = first_line(Exception(getattr(error, "message", error)))
        if refused := _REFUSED.search(f"{error}\n{error.__cause__}"):
            if refused[1]:
                return StoreUnreachableError(
                    f"Milvus refuses access; {TOKEN} must be user:password or an API key "
                    f"({refused[1]})"
                )
            return StoreUnreachableError(
                f"the certificate of {self.target.uri} is not of an authority that is trusted here "
                f"({refused[2]}); {AUTHORITY} names the file with the certificate of its authority"
            )
        if "UNAVAILABLE" in str(error) or "connect" in reason.lower():
            return StoreUnreachableError(
                f"Milvus does not answer at {self.target.uri} (tried for {self.timeout:g} s); "
                f"start it, or check the address of the index, {self.target.address}"
            )
        if "DEADLINE" in str(error):
            return StoreUnreachableError(
                f"Milvus at {self.target.uri} did not answer in {self.timeout:g} s; {TIMEOUT} "
                "sets for how many seconds to wait"
            )
        return IndexStoreError(f"Milvus, for {self.target.address}: {reason}")


def _authority() -> dict[str, str]:
    """The client's option for the authority that the environment names.

    Raises:
        ArgumentError: its file holds no certificate.
    """
    path = os.environ.get(AUTHORITY)
    if not path:
        return {}
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ArgumentError(
            f"{AUTHORITY} must name a file with a certificate (PEM), not '{path}' "
            f"({first_line(error)})"
        ) from error
    return {"server_pem_path": path}


def timeout_seconds() -> float:
    """For how long a request is tried, as the environment says."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else TIMEOUT_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"{TIMEOUT} must be a number of seconds above 0, not {text!r}")
    return seconds


def _rpc_errors() -> tuple[type[Exception], ...]:
    import grpc

    return (grpc.RpcError, grpc.FutureTimeoutError)


def _may_pass(error: Any) -> bool:
    """Whether a request that failed may succeed a little later."""
    if _REFUSED.search(str(error.__cause__)):
        return False
    return error.code not in _PERMANENT or _PASSING.search(str(error.message)) is not None


def _reading(since: int) -> dict[str, Any]:
    """The consistency options of a request."""
    if not since:
        return {"consistency_level": "Strong"}
    return {"consistency_level": "Customized", "guarantee_timestamp": since}


def _in_requests(rows: Iterable[Row]) -> Iterator[list[Row]]:
    some: list[Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += sum(4 * len(value) if hasattr(value, "__len__") else 8 for value in row.values())
        if size > REQUEST_BYTES or len(some) == REQUEST_ROWS:
            yield some
            some, size = [], 0
    if some:
        yield some


def _release(file: str) -> None:
    from milvus_lite.server_manager import server_manager_instance

    with _users_lock:
        _users[file] -= 1
        if not _users[file]:
            server_manager_instance.release_server(file)
