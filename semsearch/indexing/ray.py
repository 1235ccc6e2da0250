"""Encoding on a Ray cluster, by actors: one on each node, or one for each GPU of a node.

Ray restarts an actor that dies, and repeats its batches. The batches of an actor that is lost, as
with its node, go to the others.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any, NamedTuple, Self

from semsearch import __version__
from semsearch.encoders import load_encoder
from semsearch.errors import (
    ArgumentError,
    ClusterError,
    MissingExtraError,
    SemsearchError,
    first_line,
)
from semsearch.indexing.pool import Encoded, EncoderPool, Spaces, ThreadPool, encode_texts
from semsearch.protocols import Encoder
from semsearch.storage.spaces import Space

logger = logging.getLogger(__name__)

#: How many batches are under way for each actor: the one it has, and others for when it is done.
BATCHES_AN_ACTOR = 3
#: How often a batch is repeated whose actor dies.
RETRIES = 2
#: How often new nodes are looked for.
LOOK_SECONDS = 5.0
#: Of a Ray that is started for one run: batches and vectors on their way take a few megabytes.
STORE_BYTES = 200_000_000
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


class EncodingActor:
    """Encodes with the models of some spaces.

    Args:
        version: the version of semsearch that creates it.
        spaces: their models are loaded when needed, also after Ray restarted the actor.
    """

    def __init__(self, version: str, spaces: Sequence[Space]) -> None:
        self._version = version
        self._spaces = spaces

    def encode(self, space: int, texts: Sequence[str]) -> Encoded:
        """The vectors of passages.

        Raises:
            ClusterError: this node has not the same models and version of semsearch.
        """
        return encode_texts(self._encoders[space], texts)

    @cached_property
    def _encoders(self) -> dict[int, Encoder]:
        if self._version != __version__:
            raise ClusterError(f"it has semsearch {__version__}, not {self._version}")
        encoders = {}
        for space in self._spaces:
            try:
                encoder = load_encoder(space.spec, None, space.precision, local_files_only=True)
                encoder.encode_documents(["."])
            except SemsearchError as error:
                raise ClusterError(str(error)) from error
            if encoder.fingerprint != space.fingerprint:
                raise ClusterError(f"its model '{space.spec}' is another one")
            encoders[space.id] = encoder
        return encoders


class _Actor(NamedTuple):
    """An actor and the address of its node."""

    handle: Any
    node: str


class RayPool:
    """Encodes on a Ray cluster, from `__enter__` on.

    Args:
        address: ``ray://HOST:PORT``; None for the cluster that this machine belongs to, or else a
            new one.
        spaces: see `Spaces`.
    """

    def __init__(self, address: str | None, spaces: Spaces) -> None:
        self._address = address
        self._spaces = [space for space, _ in spaces]
        self._nodes: set[str] = set()  # those that have got actors
        self._actors: list[_Actor] = []  # the one that got texts last is at the end
        self._tasks: dict[Any, _Actor] = {}  # by Ray's reference to the result
        self._looked = -LOOK_SECONDS

    @property
    def look_ahead(self) -> int:
        """How many batches to submit before the results of the first are taken."""
        return BATCHES_AN_ACTOR * len(self._actors)

    def submit(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Start to encode passages for a space; the function returned waits for the vectors."""
        with ray_errors(self._address):
            self._look_for_nodes()
            return partial(self._result, self._assign(space.id, texts), space.id, texts)

    def _result(self, reference: Any, space: int, texts: Sequence[str]) -> Encoded:
        errors = self._ray.exceptions
        actor = self._tasks.pop(reference)
        with ray_errors(self._address):
            try:
                encoded: Encoded = self._ray.get(reference)
            except errors.RayTaskError as error:
                if not isinstance(error.cause, ClusterError):
                    raise ClusterError(f"node {actor.node}: {first_line(error.cause)}") from error
                self._leave_out(actor, str(error.cause))
            except (errors.RayActorError, errors.ActorUnschedulableError) as error:
                self._leave_out(actor, f"its actor is lost ({first_line(error)})")
            else:
                return encoded._replace(node=actor.node)
            return self._result(self._assign(space, texts), space, texts)

    def __enter__(self) -> Self:
        with ray_errors(self._address):
            self._ray, self._is_own = connect(self._address)
            self._look_for_nodes()
        if not self._actors:
            self.__exit__()
            raise ClusterError("no node of the cluster has a processor; see: ray status")
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            with suppress(Exception):  # it is gone, or Ray is
                self._ray.kill(actor.handle)
        if self._is_own:
            self._ray.shutdown()

    def _look_for_nodes(self) -> None:
        """Start actors on nodes that have joined."""
        now = time.monotonic()
        if now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        for node in self._ray.nodes():
            if node["Alive"] and node["NodeID"] not in self._nodes:
                self._nodes.add(node["NodeID"])
                self._start_actors(node)

    def _start_actors(self, node: Mapping[str, Any]) -> None:
        """Start an actor with all processors of a node, or one with a share for each GPU."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        processors = int(node["Resources"].get("CPU", 0))
        gpus = int(node["Resources"].get("GPU", 0))
        for _ in range(min(gpus or 1, processors)):
            actor_class = self._ray.remote(EncodingActor).options(
                num_cpus=max(1, processors // (gpus or 1)),
                num_gpus=min(gpus, 1),
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                max_restarts=-1,
                max_task_retries=RETRIES,
            )
            handle = actor_class.remote(__version__, self._spaces)
            self._actors.append(_Actor(handle, node["NodeManagerAddress"]))

    def _assign(self, space: int, texts: Sequence[str]) -> Any:
        """Give texts to the actor with the fewest tasks, and among these to the longest idle."""
        loads = Counter[_Actor]()
        if self._tasks:
            references = list(self._tasks)
            _, unfinished = self._ray.wait(references, num_returns=len(references), timeout=0)
            loads.update(self._tasks[reference] for reference in unfinished)
        actor = min(self._actors, key=lambda actor: loads[actor])
        self._actors.remove(actor)
        self._actors.append(actor)
        reference = actor.handle.encode.remote(space, texts)
        self._tasks[reference] = actor
        return reference

    def _leave_out(self, actor: _Actor, reason: str) -> None:
        """Stop using an actor, unless that was done before.

        Raises:
            ClusterError: it was the last one.
        """
        if actor not in self._actors:
            return
        self._actors.remove(actor)
        message = f"node {actor.node} is left out: {reason}"
        if not self._actors:
            raise ClusterError(f"no node is left to encode: {message}")
        logger.warning("%s", message)


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected to a cluster; and whether it was connected here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    options = {"logging_level": logging.ERROR, "log_to_driver": False}
    logging.getLogger("ray").setLevel(logging.ERROR)  # before it is initialised, too
    if ray.is_initialized():
        return ray, False
    with warnings.catch_warnings():
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
