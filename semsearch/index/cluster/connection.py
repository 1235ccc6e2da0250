"""Connections to Ray: addresses, and errors as one line."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from semsearch.errors import ClusterError, first_line

#: Of Ray's server for clients, on the head node.
PORT = 10001
CONNECT_SECONDS = 5.0
#: How often a connection is begun. The head starts a process for each, which now and then dies at
#: once (https://github.com/ray-project/ray/issues/63202).
ATTEMPTS = 3
#: Of a Ray that is started for one run: batches and vectors on their way take a few megabytes.
STORE_BYTES = 200_000_000

logger = logging.getLogger(__name__)


class Head(NamedTuple):
    """Where the head node of a cluster is."""

    host: str
    port: int


def check_answers(head: Head) -> None:
    """Check that something listens at the head's address; Ray itself would keep trying.

    Raises:
        ClusterError: nothing answers there.
    """
    with explained(head):
        address = (head.host.strip("[]"), head.port)
        socket.create_connection(address, CONNECT_SECONDS).close()


def connect(head: Head | None) -> tuple[Any, bool]:
    """The module `ray`, connected to a cluster.

    Args:
        head: of the cluster; None for the one that this machine belongs to, or else a new one.

    Returns:
        The module, and whether it was connected here: a process that is connected stays so.

    Raises:
        ClusterError: nothing answers there, it runs other versions of Ray or Python, or no
            Ray can be started on this machine.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    options = {"logging_level": logging.ERROR, "log_to_driver": False}
    logging.getLogger("ray").setLevel(logging.ERROR)  # before it is initialised, too
    if ray.is_initialized():
        return ray, False
    with explained(head), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong is in the error
        if head is not None:
            _init_client(f"ray://{head.host}:{head.port}", options)
            return ray, True
        try:
            ray.init("auto", **options)
        except ConnectionError:  # this machine belongs to none
            ray.init("local", include_dashboard=False, object_store_memory=STORE_BYTES, **options)
    return ray, True


def _init_client(address: str, options: dict[str, Any]) -> None:
    """Connect to the head of a cluster, in up to `ATTEMPTS` attempts."""
    import ray

    for _ in range(ATTEMPTS - 1):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError as error:
            logger.warning("%s: %s; trying again", address, _last_line(error))
    ray.init(address, **options)


@contextmanager
def explained(head: Head | None = None) -> Iterator[None]:
    """Convert Ray's exceptions into `ClusterError`."""
    import ray

    where = f"ray://{head.host}:{head.port}" if head else "the Ray cluster of this machine"
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:  # Ray raises some without a class of their own
        message = str(error)
        if "ersion mismatch" in message:
            reason = "it runs other versions of Ray or Python: " + " ".join(message.split())
        elif isinstance(error, ray.exceptions.AuthenticationError):
            reason = "it refuses access; RAY_AUTH_TOKEN or ~/.ray/auth_token must hold its token"
        elif isinstance(error, ConnectionAbortedError):
            reason = _last_line(error)
        else:
            reason = f"{first_line(error)}; start it there with: ray start --head"
        raise ClusterError(f"{where} cannot be used: {reason}") from error


def _last_line(error: ConnectionAbortedError) -> str:
    """The error at the end of the head's traceback."""
    lines = str(error).strip().splitlines() or ["the connection was closed"]
    return lines[-1].rstrip(".")
