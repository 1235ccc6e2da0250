"""Workers on a Ray cluster.

A node has one actor, which holds the models and takes all processors, or one for each GPU. A thread
of this process serves each actor: it takes the next batch and waits until the actor has done it. A
batch whose actor dies goes to another one.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import PriorityQueue
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, Self

from semsearch.errors import ClusterError, first_line
from semsearch.index.cluster.actor import EncodingActor, Model, Refused
from semsearch.index.cluster.connection import Head, connect, explained
from semsearch.index.workers import Encoded, Spaces, Spans
from semsearch.stores.protocol import Space
from semsearch.version import __version__

logger = logging.getLogger(__name__)

#: How many batches are under way for each actor: the one it has, and others for when it is done.
BATCHES_AN_ACTOR = 3
#: How many actors may die one after another before their node is left out; and how many may die of
#: one batch before the run ends.
DEATHS = 3
#: How long an actor is waited for before that is reported.
PATIENCE_SECONDS = 60.0
#: How often new nodes are looked for; and how long Ray may take to notice that one is gone.
LOOK_SECONDS, PAUSE_SECONDS = 5.0, 1.0
#: How long the threads may take to end.
END_SECONDS = 5.0

#: What comes first: the end; then what holds up the reading of the corpus; then the rest.
_END, _CUT, _ENCODE = range(3)


class _Task:
    """A call of an actor's method."""

    def __init__(self, method: str, *args: Any) -> None:
        self.method = method
        self.args = args
        self.deaths = 0  # of actors that had it
        self.future: Future[Any] = Future()


class _Entry(NamedTuple):
    """A place in the queue."""

    priority: int
    number: int
    task: _Task


class _Seat(NamedTuple):
    """Room for one actor on a node."""

    node: str  # Ray's id of it
    number: int  # among those of the node
    address: str
    processors: int
    gpus: int


class RayWorkers:
    """Workers that run as actors on a Ray cluster, from `__enter__` on.

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
        self._tasks: PriorityQueue[_Entry] = PriorityQueue()
        self._numbers = itertools.count()
        self._ended = Event()
        self._looked: float | None = None
        self._known: set[str] = set()  # nodes
        self._threads: list[Thread] = []
        self._lock = Lock()  # of the following
        self._serving: set[_Seat] = set()
        self._actors: list[Any] = []
        self._failure: ClusterError | None = None

    @property
    def cutting_ahead(self) -> int:
        """How many batches are being cut, or wait for that, while others are encoded."""
        return BATCHES_AN_ACTOR * max(1, len(self._serving))

    @property
    def encoding_ahead(self) -> int:
        """How many batches are being encoded, or wait for that, while others are written."""
        return self.cutting_ahead

    def cut(self, texts: Sequence[str], max_tokens: int) -> Callable[[], list[Spans]]:
        """Begin to cut documents into passages; what is returned waits for them."""
        return self._begin(_CUT, _Task("cut", texts, max_tokens))

    def encode(self, space: Space, texts: Sequence[str]) -> Callable[[], Encoded]:
        """Begin to encode passages for a space; what is returned waits for their vectors."""
        return self._begin(_ENCODE, _Task("encode", space.id, texts))

    def __enter__(self) -> Self:
        self._ray, self._is_own = connect(self._head)
        try:
            self._serve_new_nodes()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._ended.set()
        with self._lock:
            actors = list(self._actors)
        for actor in actors:
            with suppress(Exception):  # it may be dead
                self._ray.kill(actor)
        for _ in self._threads:
            self._tasks.put(_Entry(_END, next(self._numbers), _Task("")))
        for thread in self._threads:
            thread.join(END_SECONDS)
        if self._is_own:
            self._ray.shutdown()

    def _begin(self, priority: int, task: _Task) -> Callable[[], Any]:
        self._serve_new_nodes()
        with self._lock:
            if self._failure:
                raise self._failure
            self._tasks.put(_Entry(priority, next(self._numbers), task))
        return task.future.result

    def _serve_new_nodes(self) -> None:
        """Serve nodes that have come since the last time.

        Raises:
            ClusterError: Ray does not answer, or has no node for actors.
        """
        now = time.monotonic()
        if self._looked is not None and now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        with explained(self._head):
            seats = [seat for node in self._ray.nodes() for seat in _seats(node)]
        if not seats and not self._known:
            raise ClusterError(
                "no node of the cluster has a processor for an actor; see: ray status"
            )
        for seat in seats:
            if seat.node not in self._known:
                with self._lock:
                    self._serving.add(seat)
                self._threads.append(Thread(target=self._serve, args=[seat], daemon=True))
                self._threads[-1].start()
        self._known |= {seat.node for seat in seats}

    def _serve(self, seat: _Seat) -> None:
        """Give batches to the actor of a seat, and to those that replace it."""
        deaths, reason = 0, ""
        while deaths < DEATHS and not self._ended.is_set():
            done = 0
            try:
                for _ in self._work_of(self._actor(seat), seat):
                    done += 1
            except ClusterError as error:
                reason = str(error)
                break
            except Exception as error:  # of Ray, or of the connection to it
                deaths = 1 if done else deaths + 1
                reason = f"its actors die ({first_line(error)})"
                if self._ended.wait(PAUSE_SECONDS) or not self._is_alive(seat):
                    reason = "it is gone"
                    break
                logger.warning("node %s: its actor died; another one is started", seat.address)
        if not self._ended.is_set():
            self._leave(seat, reason)

    def _actor(self, seat: _Seat) -> Any:
        """A new actor, which has loaded its models."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "num_cpus": seat.processors,
            "num_gpus": seat.gpus,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(seat.node, soft=False),
        }
        actor = self._ray.remote(EncodingActor).options(**options).remote(__version__, self._models)
        with self._lock:
            self._actors.append(actor)
        if self._ended.is_set():
            self._ray.kill(actor)
        preparing = actor.prepare.remote()
        if not self._ray.wait([preparing], timeout=PATIENCE_SECONDS)[0]:
            logger.warning(
                "node %s: no actor after %d s; its processors may be taken (ray status), or its "
                "model is still being converted",
                seat.address,
                PATIENCE_SECONDS,
            )
        self._checked(self._ray.get(preparing))
        return actor

    def _work_of(self, actor: Any, seat: _Seat) -> Iterator[None]:
        """Give batches to an actor until it dies or all are done; yields after each."""
        while (entry := self._tasks.get()).priority != _END:
            task = entry.task
            try:
                found = self._ray.get(getattr(actor, task.method).remote(*task.args))
            except self._ray.exceptions.RayTaskError as error:  # a bug, or a lack of memory
                task.future.set_exception(_failed(seat, first_line(error.cause)))
            except Exception as error:
                task.deaths += 1
                if task.deaths < DEATHS:
                    self._tasks.put(entry)
                else:
                    reason = f"{DEATHS} actors died of one batch; {first_line(error)}"
                    task.future.set_exception(_failed(seat, reason))
                raise
            else:
                if isinstance(found, Refused):
                    task.future.set_exception(_failed(seat, found.reason))
                elif isinstance(found, Encoded):
                    task.future.set_result(found._replace(node=seat.address))
                else:
                    task.future.set_result(found)
            yield

    def _checked(self, found: Refused | None) -> None:
        if found is not None:
            raise ClusterError(found.reason)

    def _is_alive(self, seat: _Seat) -> bool:
        with suppress(Exception):  # Ray does not answer
            return any(node["NodeID"] == seat.node and node["Alive"] for node in self._ray.nodes())
        return False

    def _leave(self, seat: _Seat, reason: str) -> None:
        """Stop using a seat; after the last one, everything that waits fails."""
        message = f"node {seat.address} is left out: {reason}"
        with self._lock:
            self._serving.remove(seat)
            if self._serving:
                logger.warning("%s", message)
                return
            self._failure = ClusterError(f"no node is left to encode: {message}")
            while not self._tasks.empty():
                self._tasks.get().task.future.set_exception(self._failure)


def _seats(node: Mapping[str, Any]) -> list[_Seat]:
    """The room for actors on a node, as `ray.nodes` describes it."""
    processors = int(node["Resources"].get("CPU", 0))
    gpus = min(int(node["Resources"].get("GPU", 0)), processors)
    if not node["Alive"] or not processors:
        return []
    count = gpus or 1
    share = processors // count
    return [
        _Seat(node["NodeID"], number, node["NodeManagerAddress"], share, min(gpus, 1))
        for number in range(count)
    ]


def _failed(seat: _Seat, reason: str) -> ClusterError:
    return ClusterError(f"node {seat.address}: {reason}")
