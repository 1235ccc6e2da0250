"""Connections to Ray, and its errors as `ClusterError`."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semsearch.errors import ClusterError

CONNECT_SECONDS = 5.0
#: Of a Ray that is started for one run: batches and vectors on their way take a few megabytes.
STORE_BYTES = 200_000_000


def check_answers(host: str, port: int) -> None:
    """Check that something listens at the head of a cluster; Ray itself would keep trying.

    Raises:
        ClusterError: nothing answers there.
    """
    try:
        socket.create_connection((host.strip("[]"), port), CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"ray://{host}:{port} cannot be used: {error}; start it there with: ray start --head"
        ) from error


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected to a cluster.

    Args:
        address: ``ray://HOST:PORT``; None for the cluster that this machine belongs to, or else a
            new one.

    Returns:
        The module, and whether it was connected here: a process that is connected stays so.

    Raises:
        ClusterError: Ray cannot connect, or none can be started on this machine.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    options = {"logging_level": logging.ERROR, "log_to_driver": False}
    logging.getLogger("ray").setLevel(logging.ERROR)  # before it is initialised, too
    if ray.is_initialized():
        return ray, False
    with ray_errors(address), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong is in the error
        try:
            ray.init(address or "auto", **options)
        except ConnectionError:
            if address:
                raise
            # This machine belongs to no cluster.
            ray.init("local", include_dashboard=False, object_store_memory=STORE_BYTES, **options)
    return ray, True


@contextmanager
def ray_errors(address: str | None) -> Iterator[None]:
    """Convert Ray's exceptions into `ClusterError`."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:  # Ray raises some without a class of their own
        where = address or "the Ray cluster of this machine"
        raise ClusterError(f"{where} cannot be used: {' '.join(str(error).split())}") from error
