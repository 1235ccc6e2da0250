"""A pool of actors on a Ray cluster: one on each node, or one for each GPU of a node.

Ray restarts an actor that dies, and repeats its batches. The batches of an actor that is lost, as
with its node, go to the others.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from semsearch.errors import ClusterError, first_line
from semsearch.index.cluster.actor import EncodingActor, Model
from semsearch.index.cluster.connection import Head, connect, explained
from semsearch.index.pool import Encoded, Spaces
from semsearch.stores.protocol import Space
from semsearch.version import __version__

logger = logging.getLogger(__name__)

#: How many batches are under way for each actor: the one it has, and others for when it is done.
BATCHES_AN_ACTOR = 3
#: How often a batch is repeated whose actor dies.
RETRIES = 2
#: How long the first actor is waited for before that is reported.
PATIENCE_SECONDS = 60.0
#: How often new nodes are looked for.
LOOK_SECONDS = 5.0


@dataclass(eq=False)
class _Actor:
    """An actor and the address of its node."""

    handle: Any
    node: str


@dataclass(eq=False)
class _Task:
    """Texts that an actor encodes for a space."""

    pool: RayPool
    arguments: tuple[int, Sequence[str]]
    actor: _Actor = field(init=False)
    reference: Any = field(init=False)

    def result(self) -> Encoded:
        """Wait for the vectors.

        Raises:
            ClusterError: they cannot be encoded, or no node is left.
        """
        return self.pool.result(self)


class RayPool:
    """Encodes on a Ray cluster, from `__enter__` on.

    Args:
        head: of the cluster; None for the one that this machine belongs to, or else a new one.
        spaces: see `Spaces`.
    """

    def __init__(self, head: Head | None, spaces: Spaces) -> None:
        self._head = head
        self._models = [
            Model(space.id, encoder.spec, space.precision.value, encoder.fingerprint)
            for space, encoder in spaces
        ]
        self._nodes: set[str] = set()  # those that have actors
        self._starting: dict[Any, _Actor] = {}  # by the reference to its `fault`
        self._actors: list[_Actor] = []
        self._tasks: list[_Task] = []
        self._looked = -LOOK_SECONDS

    @property
    def look_ahead(self) -> int:
        """How many batches to submit before the results of the first are taken."""
        return BATCHES_AN_ACTOR * len(self._actors)

    def submit(self, space: Space, texts: Sequence[str]) -> _Task:
        """Start to encode passages for a space."""
        task = _Task(self, (space.id, texts))
        with explained(self._head):
            self._use_new_nodes()
            self._assign(task)
        self._tasks.append(task)
        return task

    def result(self, task: _Task) -> Encoded:
        """Wait for the vectors of a task; see `_Task.result`."""
        errors = self._ray.exceptions
        with explained(self._head):
            while True:
                try:
                    encoded: Encoded = self._ray.get(task.reference)
                except (errors.RayActorError, errors.ActorUnschedulableError) as error:
                    self._leave_out(task.actor, f"its actor is lost ({first_line(error)})")
                    self._assign(task)
                except errors.RayTaskError as error:
                    reason = first_line(error.cause)
                    raise ClusterError(f"node {task.actor.node}: {reason}") from error
                else:
                    self._tasks.remove(task)
                    return encoded._replace(node=task.actor.node)

    def __enter__(self) -> Self:
        self._ray, self._is_own = connect(self._head)
        try:
            with explained(self._head):
                self._use_new_nodes()
                self._await_actor()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for actor in [*self._actors, *self._starting.values()]:
            with suppress(Exception):  # it is gone, or Ray is
                self._ray.kill(actor.handle)
        if self._is_own:
            self._ray.shutdown()

    def _use_new_nodes(self) -> None:
        """Start actors on nodes that have joined, and use those that have loaded their models."""
        now = time.monotonic()
        if now >= self._looked + LOOK_SECONDS:
            self._looked = now
            for node in self._ray.nodes():
                if node["NodeID"] not in self._nodes and (resources := _resources(node)):
                    self._nodes.add(node["NodeID"])
                    for of_actor in resources:
                        self._start(node, of_actor)
        self._use_started(0)

    def _start(self, node: Mapping[str, Any], resources: Mapping[str, int]) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            **resources,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            "max_restarts": -1,
            "max_task_retries": RETRIES,
        }
        remote = self._ray.remote(EncodingActor).options(**options)
        handle = remote.remote(__version__, self._models)
        self._starting[handle.fault.remote()] = _Actor(handle, node["NodeManagerAddress"])

    def _use_started(self, timeout: float) -> bool:
        """Use actors that have loaded their models within some seconds; whether one has tried."""
        if not self._starting:
            return False
        started, _ = self._ray.wait(list(self._starting), timeout=timeout)
        for reference in started:
            actor = self._starting.pop(reference)
            self._actors.append(actor)
            try:
                fault = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                fault = first_line(error)
            if fault:
                self._leave_out(actor, fault)
        return bool(started)

    def _await_actor(self) -> None:
        """Wait until there is an actor.

        Raises:
            ClusterError: no node has room for one, or none can encode.
        """
        if not self._starting and not self._actors:
            raise ClusterError(
                "no node of the cluster has a processor for an actor; see: ray status"
            )
        while not self._actors:
            if not self._use_started(PATIENCE_SECONDS):
                logger.warning(
                    "no actor after %d s; the processors of the nodes may be taken (ray status), "
                    "or a model is still being converted",
                    PATIENCE_SECONDS,
                )

    def _assign(self, task: _Task) -> None:
        """Give a task to the actor with the fewest others, or to the one that got none longest."""
        self._await_actor()
        loads = Counter[_Actor]()
        if self._tasks:
            references = [other.reference for other in self._tasks]
            _, unfinished = self._ray.wait(references, num_returns=len(references), timeout=0)
            loads.update(other.actor for other in self._tasks if other.reference in unfinished)
        task.actor = min(self._actors, key=lambda actor: loads[actor])
        self._actors.remove(task.actor)
        self._actors.append(task.actor)
        task.reference = task.actor.handle.encode.remote(*task.arguments)

    def _leave_out(self, actor: _Actor, reason: str) -> None:
        """Stop using an actor, unless that was done before.

        Raises:
            ClusterError: it was the last one.
        """
        if actor not in self._actors:
            return
        self._actors.remove(actor)
        message = f"node {actor.node} is left out: {reason}"
        if not self._actors and not self._starting:
            raise ClusterError(f"no node is left to encode: {message}")
        logger.warning("%s", message)


def _resources(node: Mapping[str, Any]) -> list[dict[str, int]]:
    """What each actor of a node takes: all processors, or one GPU and its share of them.

    Args:
        node: as `ray.nodes` describes it.
    """
    processors = int(node["Resources"].get("CPU", 0))
    gpus = min(int(node["Resources"].get("GPU", 0)), processors)
    if not node["Alive"] or not processors:
        return []
    count = gpus or 1
    return [{"num_cpus": processors // count, "num_gpus": min(gpus, 1)}] * count
