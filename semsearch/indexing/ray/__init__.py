"""Encoding on a Ray cluster. `pool_on` returns the pool that ``--ray`` names."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from semsearch.errors import ArgumentError, ClusterError, MissingExtraError
from semsearch.indexing.pool import EncoderPool, Spaces, ThreadPool

#: The port of Ray's server for clients, on the head node.
PORT = 10001
CONNECT_SECONDS = 5.0


def pool_on(address: str | None) -> Callable[[Spaces], EncoderPool]:
    """A function that creates the pool for some spaces.

    Args:
        address: ``auto`` for the cluster that this machine belongs to, or for a Ray of this
            machine alone where there is none; ``ray://HOST[:PORT]`` for a cluster elsewhere; None
            for this process.

    Raises:
        ArgumentError: it is none of these.
        MissingExtraError: the extra ``ray`` is not installed.
        ClusterError: nothing answers there.
    """
    if address is None:
        return ThreadPool
    found = re.fullmatch(r"auto|ray://([\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?", address)
    if not found:
        raise ArgumentError(f"ray must be auto or ray://HOST[:PORT], not '{address}'")
    for package, distribution in [("ray", "ray"), ("grpc", "grpcio")]:
        if find_spec(package) is None:
            raise MissingExtraError(distribution, "ray", "encoding on a cluster")
    from semsearch.indexing.ray.pool import RayPool

    host, port = found[1], int(found[2] or PORT)
    if host is None:
        return partial(RayPool, None)
    server = f"ray://{host}:{port}"
    try:  # before an index is made; Ray itself would keep trying
        socket.create_connection((host.strip("[]"), port), CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"{server} cannot be used: {error}; start it there with: ray start --head"
        ) from error
    return partial(RayPool, server)
