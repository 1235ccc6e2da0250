"""The connection to a Milvus server or to a file of milvus-lite: addresses, retries, errors."""

from __future__ import annotations

import logging
import math
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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

#: Environment variables: a token (``user:password``), TLS (``1``), the file of a certificate
#: authority, and how many seconds a failing request is retried.
TOKEN, TLS, AUTHORITY, TIMEOUT = (
    f"SEMSEARCH_MILVUS_{name}" for name in ("TOKEN", "TLS", "CA", "TIMEOUT")
)
TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS = 0.5

#: A request of this size is far below the 64 MiB that a server accepts.
REQUEST_BYTES, REQUEST_ROWS = 8 << 20, 500

#: The code of the error that a collection is not in memory.
_NOT_LOADED = 101
#: Messages of servers that are starting or lose a node.
_PASSING = re.compile(
    r"not (fully )?loaded|not ready|no available|not healthy|unavailable|offline|recovering|"
    r"not found.*(shard|channel|leader|node)|(shard|channel|leader|node).*not found|"
    r"connection|deadline|timeout|timed out|context canceled|failed to (search|query)",
    re.IGNORECASE,
)
#: gRPC's messages about a refused token, and about a refused certificate.
_REFUSED = re.compile(
    r"StatusCode\.(?:UNAUTHENTICATED|PERMISSION_DENIED)\s+details = \"(.*)\"|"
    r"[Hh]andshake failed .*OPENSSL_internal:(\w+)"
)

#: Names of indexes; those of collections have up to 20 more characters.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")

_users: Counter[str] = Counter()  # open connections of this process by file of milvus-lite
_users_lock = Lock()

Row = dict[str, Any]


class Target(NamedTuple):
    """What an address names."""

    address: Address
    uri: str  #: of the server, or the real path of the file
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
    """Requests to Milvus, retried while they may succeed.

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
        self._client: Any = self._connect()
        self.version = str(self.call("get_server_version"))

    @property
    def has_bm25(self) -> bool:
        """Whether it has the function BM25."""
        version = re.match(r"v?(\d+)\.(\d+)", self.version)
        return self.target.is_file or (
            version is not None and (int(version[1]), int(version[2])) >= (2, 5)
        )

    def close(self) -> None:
        """Close it; a file of milvus-lite once nothing else in this process uses it."""
        client, self._client = self._client, None
        if client is None:
            return
        client.close()
        if self.target.is_file:
            _release(self.target.uri)

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """The result of a method of the client, retried for `timeout` seconds.

        Raises:
            IndexStoreError: it fails for good.
            IndexClosedError: `close` was called.
        """
        if self._client is None:
            raise IndexClosedError(f"the index {self.target.address} is closed")
        return self._retried(getattr(self._client, method), *args, **options)

    def now(self) -> int:
        """The server's time; 0 for milvus-lite, where every request sees what was written."""
        if self.target.is_file:
            return 0
        return int(self._retried(self._client._get_connection().alloc_timestamp))

    def upsert(self, collection: str, rows: Iterable[Row]) -> None:
        """Write rows; they replace those with the same primary keys."""
        for some in _in_requests(rows):
            self.call("upsert", collection, some)

    def _connect(self) -> Any:
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it logs each failing handshake
        from pymilvus import MilvusClient, MilvusException

        for name in ("pymilvus", "milvus_lite"):  # both log each error with its traceback
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if not self.target.is_file:
            # Dedicated: the client shares connections without regard to their certificates.
            options = {"token": os.environ.get(TOKEN, ""), "dedicated": True, **_authority()}
            return self._retried(MilvusClient, uri=self.target.uri, **options)
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

    def _retried(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        import grpc
        from pymilvus import MilvusException

        until, is_loaded = time.monotonic() + self.timeout, True
        while True:
            left = max(until - time.monotonic(), PAUSE_SECONDS)
            try:
                if not is_loaded:
                    self._client.load_collection(args[0], timeout=left)
                return method(*args, timeout=left, **options)
            except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
                if not _may_pass(error) or time.monotonic() + PAUSE_SECONDS > until:
                    raise self._explained(error) from error
                is_loaded = getattr(error, "code", None) != _NOT_LOADED
            time.sleep(PAUSE_SECONDS)

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
        if re.search("unavailable|deadline|connect|timeout", f"{error} {reason}", re.IGNORECASE):
            return StoreUnreachableError(
                f"Milvus does not answer at {self.target.uri} (tried for {self.timeout:g} s, see "
                f"{TIMEOUT}); start it, or check the address of the index, {self.target.address}"
            )
        return IndexStoreError(f"Milvus, for {self.target.address}: {reason}")


def timeout_seconds() -> float:
    """How many seconds a request is retried, as the environment says."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else TIMEOUT_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"{TIMEOUT} must be a number of seconds above 0, not {text!r}")
    return seconds


def quoted_text(text: str) -> str:
    """A text as a literal of Milvus' expressions."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped}"'


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def one_of(field: str, values: Sequence[int] | Sequence[str]) -> str:
    """A condition that a field has one of these values."""
    listed = (quoted_text(value) if isinstance(value, str) else str(value) for value in values)
    return f"{field} in [{', '.join(listed)}]"


def all_of(*conditions: str) -> str:
    """A condition that all of these hold, of which some may be empty."""
    return " and ".join(f"({condition})" for condition in conditions if condition)


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


def _may_pass(error: Exception) -> bool:
    """Whether a failed request may succeed a little later."""
    text = f"{type(error).__name__}: {error}\n{error.__cause__}"
    return not _REFUSED.search(text) and _PASSING.search(text) is not None


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
