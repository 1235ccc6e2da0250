"""The connection to a Milvus server or to a file of milvus-lite."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from semsearch.errors import (
    ArgumentError,
    IndexBusyError,
    IndexNotFoundError,
    IndexStoreError,
    MissingExtraError,
    first_line,
)
from semsearch.storage.address import Address
from semsearch.storage.milvus.conditions import all_of, one_of
from semsearch.storage.spaces import Space

#: Environment variables: a token (``user:password``), and TLS (``1``).
TOKEN, TLS = "SEMSEARCH_MILVUS_TOKEN", "SEMSEARCH_MILVUS_TLS"

#: For how long the client retries a request.
TIMEOUT_SECONDS = 30.0

#: How many rows are written at once, and how many ids a condition lists: servers accept 64 MiB and
#: answer up to 100 MB, and a text has up to 64 KiB.
ROWS_AT_ONCE, IDS_AT_ONCE = 200, 1000

Row = dict[str, Any]


def parsed(address: Address) -> tuple[str, str]:
    """What an address names: the URI of a server or the real path of a file, and an index there.

    Raises:
        ArgumentError: it is no address of Milvus.
    """
    is_file = address.engine == "milvus-lite"
    where = r"(.+\.db)" if is_file else r"/((?:[\w.-]+|\[[\w:.]+\])(?::\d+)?)"
    parts = re.fullmatch(rf"{where}/([A-Za-z_]\w*)", address.rest)
    if not parts:
        raise ArgumentError(
            f"{address}: write milvus://HOST:PORT/NAME or milvus-lite:///FOLDER/FILE.db/NAME, with "
            "a NAME of letters, digits and _"
        )
    scheme = "http" if os.environ.get(TLS, "") in ("", "0") else "https"
    return os.path.realpath(parts[1]) if is_file else f"{scheme}://{parts[1]}", parts[2]


class Connection:
    """Requests to Milvus about the index at an address.

    A missing file of milvus-lite is created if it `creates`, or else IndexNotFoundError is raised.
    """

    def __init__(self, path: Path, *, creates: bool = False) -> None:
        address = Address(path)
        self.address = cast("Path", address)
        self.uri, self.name = parsed(address)
        self.is_file = address.engine == "milvus-lite"
        if self.is_file and not creates and not Path(self.uri).exists():
            raise self.not_found()
        self.timeout = TIMEOUT_SECONDS
        self._client = self._open()
        self.version = str(self.call("get_server_version"))

    @property
    def has_bm25(self) -> bool:
        """Whether it has the function BM25: milvus-lite has, and servers from 2.5 on."""
        version = [int(part) for part in re.findall(r"\d+", self.version)[:2]]
        return self.is_file or version >= [2, 5]

    def passages(self, space: Space) -> str:
        """The collection of passages with their vectors in a space."""
        return f"{self.name}_space_{space.id}"

    def not_found(self) -> IndexNotFoundError:
        """The error that there is no index."""
        make = f"semsearch index CORPUS --index {self.address}"
        return IndexNotFoundError(f"no index at {self.address}; make one with: {make}")

    def close(self) -> None:
        """Close it."""
        self._client.close()

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """The result of a method of the client.

        Raises:
            IndexStoreError: it fails, or `close` was called.
        """
        import grpc
        from pymilvus import MilvusException

        try:
            return getattr(self._client, method)(*args, timeout=self.timeout, **options)
        except (MilvusException, grpc.RpcError) as error:
            raise IndexStoreError(self._message(error)) from error

    def query(
        self, collection: str, condition: str, fields: Iterable[str], consistency: str = "Session"
    ) -> list[Row]:
        """The rows that match a condition, in any order, with all that this process has written."""
        options = {"output_fields": list(fields), "consistency_level": consistency}
        return [dict(row) for row in self.call("query", collection, filter=condition, **options)]

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
        for start in range(0, len(values), IDS_AT_ONCE):
            condition = one_of(key, values[start : start + IDS_AT_ONCE])
            self.call("delete", collection, filter=condition)

    def _open(self) -> Any:
        for package in ("pymilvus", "milvus_lite")[: 1 + self.is_file]:
            if find_spec(package) is None:
                raise MissingExtraError(package.replace("_", "-"), "milvus", "an index on Milvus")
            logging.getLogger(package).setLevel(logging.CRITICAL)  # it logs each error's traceback
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it logs each failing handshake
        from pymilvus import MilvusClient, MilvusException

        token = os.environ.get(TOKEN, "")
        try:
            return MilvusClient(self.uri, token=token, timeout=self.timeout, dedicated=True)
        except MilvusException as error:
            if self.is_file:
                raise IndexBusyError(
                    f"{self.uri} cannot be opened: another process uses it, it is no file of "
                    "milvus-lite, or its folder is missing"
                ) from error
            raise IndexStoreError(f"{self._message(error)} (see {TOKEN} and {TLS})") from error

    def _message(self, error: Exception) -> str:
        reason = first_line(Exception(getattr(error, "message", error)))
        return f"Milvus at {self.uri}, for {self.address}: {reason}"
