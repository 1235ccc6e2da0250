"""A thread for each index, which encodes queries that arrive during a search together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from semsearch.errors import IndexStoreError, SemsearchError
from semsearch.storage.interruption import interruptible

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.records import Hits

#: The most requests in a batch.
BATCH = 32

#: The maximum time in seconds that a batch waits to become as large as the previous one, whose
#: clients are likely to send the next request.
LONGEST_WAIT = 0.005

Result = TypeVar("Result")


@dataclass(eq=False)
class Request(Generic[Result]):
    """An operation on the index.

    Those with the same `options` of `Index.search_many` can be done together, for their `queries`.
    """

    function: Callable[[Index], Result]
    is_search: bool = False  #: whether it may end early; writing does not
    queries: Sequence[str] = ()
    options: dict[str, Any] | None = None
    future: Future[Result] = field(default_factory=Future)
    is_abandoned: bool = False  #: its client has gone, or was told that it took too long


class Worker:
    """Searches and writes an index in a thread of its own; other threads may read the `index`.

    A request waits for the previous batch and, if that had several requests, up to `LONGEST_WAIT`.

    Args:
        path: the index.

    Raises:
        IndexStoreError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        from semsearch.index import Index  # agents list tools before they use it

        self.index = Index.open(path)
        self._queue: SimpleQueue[Request[Any] | None] = SimpleQueue()
        self._closed = False
        self._thread = Thread(target=self._work, name=f"semsearch {path}", daemon=True)
        self._thread.start()

    async def search(
        self, queries: Sequence[str], options: dict[str, Any]
    ) -> tuple[list[Hits], list[str]]:
        """The results of queries, in order, and warnings; see `Index.search_many`."""

        def found(index: Index) -> tuple[list[Hits], list[str]]:
            with warnings_of_thread() as warnings:
                return index.search_many(queries, **options), warnings

        # Explaining takes time after encoding, the work that batches save.
        together = None if options.get("explain") else options
        return await self._result_of(Request(found, True, queries, together))

    async def more_like(self, name: str, **options: Any) -> tuple[Hits, list[str]]:
        """The documents nearest to one, and warnings; see `Index.more_like`."""

        def found(index: Index) -> tuple[Hits, list[str]]:
            with warnings_of_thread() as warnings:
                return index.more_like(name, **options), warnings

        return await self._result_of(Request(found, True))

    async def call(self, function: Callable[[Index], Result]) -> Result:
        """Call a function with the index in the thread."""
        return await self._result_of(Request(function))

    async def _result_of(self, request: Request[Result]) -> Result:
        """Put a request into the queue, and wait for its result.

        Raises:
            IndexStoreError: the worker was closed before the request began.
        """
        if self._closed:
            _fail_as_closed()
        self._queue.put(request)
        try:
            return await asyncio.wrap_future(request.future)
        except asyncio.CancelledError:
            request.is_abandoned = True
            raise

    def close(self) -> None:
        """Close the index after the current batch; requests that still wait fail."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        batch = self._batch(expected=1)
        while not self._closed:
            self._process(batch)
            batch = self._batch(expected=len(batch))
        self.index.close()
        while not self._queue.empty():
            batch.append(self._queue.get())
        for request in batch:
            if request is not None:
                _settle(request.future, _fail_as_closed)

    def _batch(self, expected: int) -> list[Request[Any] | None]:
        """Pending requests, after a short wait for the expected number; None ends the thread."""
        found = [self._queue.get()]
        deadline = time.monotonic() + LONGEST_WAIT
        with suppress(Empty):
            while len(found) < BATCH:
                left = deadline - time.monotonic() if len(found) < expected else 0
                found.append(self._queue.get(timeout=max(0, left)))
        return found

    def _process(self, batch: Sequence[Request[Any] | None]) -> None:
        """Do requests, the searches first, and those with the same options together."""
        requests = [one for one in batch if one is not None and not one.future.cancelled()]
        searches: dict[str, list[Request[Any]]] = {}
        for request in requests:
            if request.options is not None:
                searches.setdefault(repr(sorted(request.options.items())), []).append(request)
        for same_options in searches.values():
            if len(same_options) > 1:
                self._search_together(same_options)
        for request in sorted(requests, key=lambda one: one.options is None):
            if not request.future.done():
                with _interruptible([request] if request.is_search else []):
                    _settle(request.future, partial(request.function, self.index))

    def _search_together(self, searches: Sequence[Request[Any]]) -> None:
        """Do searches in one call; none of them if it fails or warns, because of one of them."""
        queries = [query for search in searches for query in search.queries]
        try:
            with _interruptible(searches), warnings_of_thread() as warnings:
                found = iter(self.index.search_many(queries, **(searches[0].options or {})))
        except BaseException:  # the search that fails by itself gets its error
            return
        if warnings:
            return
        for search in searches:
            hits = list(islice(found, len(search.queries)))
            _settle(search.future, partial(tuple, (hits, [])))


def _interruptible(requests: Sequence[Request[Any]]) -> AbstractContextManager[None]:
    """A block that ends early once all of its requests, if there are any, are abandoned."""
    return interruptible(
        lambda: bool(requests) and all(request.is_abandoned for request in requests)
    )


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    """Set the result of a future to what a function returns or raises.

    The function is not called if the future is cancelled, because the client has gone.
    """
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except Exception as error:  # passed on to the request
        future.set_exception(error)
    except BaseException as error:  # such as a panic in Rust, which would end the service
        future.set_exception(RuntimeError(repr(error)))


def _fail_as_closed() -> None:
    raise IndexStoreError("the service is closing")


@contextmanager
def warnings_of_thread() -> Iterator[list[str]]:
    """Collect the warnings of this thread, including those that an index logs only once."""
    warnings: list[str] = []
    thread = get_ident()

    class Collected(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                warnings.append(record.getMessage())

    logger, handler = logging.getLogger("semsearch"), Collected()
    logger.addHandler(handler)
    try:
        yield warnings
    finally:
        logger.removeHandler(handler)


def with_warnings(answer: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """An answer, with the member ``warnings`` if there are any."""
    return {**answer, "warnings": list(warnings)} if warnings else answer


def of_each(
    workers: Mapping[str, Worker], function: Callable[[Index], Result]
) -> dict[str, Result]:
    """What a function returns for each index, without those that cannot be read.

    Raises:
        SemsearchError: none can.
    """
    found: dict[str, Result] = {}
    failed: SemsearchError | None = None
    for name in workers:
        try:
            found[name] = function(workers[name].index)
        except SemsearchError as error:
            failed = error
    if failed is not None and not found:
        raise failed
    return found
