"""A thread for each index, which encodes queries that arrive during a search together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, get_ident
from typing import Any, TypeVar

from semsearch.errors import SemsearchError
from semsearch.index import Index
from semsearch.records import Hits

#: The most requests in a batch.
BATCH = 32

#: The maximum time in seconds that a batch waits to become as large as the previous one, whose
#: clients are likely to send the next request.
LONGEST_WAIT = 0.005

Result = TypeVar("Result")


@dataclass(eq=False)
class Search:
    """Queries of one request.

    Args:
        queries: texts.
        options: the arguments of `Index.search_many`.
        future: receives the results.
    """

    queries: Sequence[str]
    options: dict[str, Any]
    future: Future[tuple[list[Hits], list[str]]] = field(default_factory=Future)


@dataclass(eq=False)
class Call:
    """Any other operation on the index."""

    function: Callable[[Index], Any]
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """Searches an index in a thread of its own.

    A request waits for the previous batch and, if that had several requests, up to `LONGEST_WAIT`.

    Args:
        path: the index.
        on_batch: called with the number of queries encoded together.

    Raises:
        IndexStoreError: it cannot be opened.
    """

    def __init__(self, path: Path, on_batch: Callable[[int], None] = lambda size: None) -> None:
        self.path = path
        self._on_batch = on_batch
        self._queue: SimpleQueue[Search | Call | None] = SimpleQueue()
        self._index = Index.open(path)
        self._thread = Thread(target=self._work, name=f"semsearch {path}", daemon=True)
        self._thread.start()

    async def search(
        self, queries: Sequence[str], options: dict[str, Any]
    ) -> tuple[list[Hits], list[str]]:
        """The results of queries, in order, and warnings; see `Index.search_many`."""
        if options.get("explain"):  # this takes time after encoding, the work that batches save
            return await self.call(lambda index: self._searched(queries, options))
        request = Search(queries, options)
        self._queue.put(request)
        return await asyncio.wrap_future(request.future)

    async def more_like(self, name: str, **options: Any) -> tuple[Hits, list[str]]:
        """The documents nearest to one, and warnings; see `Index.more_like`."""

        def found(index: Index) -> tuple[Hits, list[str]]:
            with warnings_of(index) as warnings:
                return index.more_like(name, **options), warnings

        return await self.call(found)

    async def call(self, function: Callable[[Index], Result]) -> Result:
        """Call a function with the index in the thread."""
        request = Call(function)
        self._queue.put(request)
        found: Result = await asyncio.wrap_future(request.future)
        return found

    def close(self) -> None:
        """Finish pending requests, then close the index."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        batch: list[Search | Call | None] = []
        while None not in batch:
            batch = self._batch(expected=len(batch))
            searches: dict[str, list[Search]] = {}
            for request in batch:
                if isinstance(request, Search):
                    searches.setdefault(repr(sorted(request.options.items())), []).append(request)
            for same_options in searches.values():
                self._search(same_options)
            for request in batch:
                if isinstance(request, Call):
                    _settle(request.future, partial(request.function, self._index))
        self._index.close()

    def _batch(self, expected: int) -> list[Search | Call | None]:
        """Pending requests, after a short wait for the expected number."""
        found = [self._queue.get()]
        deadline = time.monotonic() + LONGEST_WAIT
        with suppress(Empty):
            while len(found) < BATCH:
                left = deadline - time.monotonic() if len(found) < expected else 0
                found.append(self._queue.get(timeout=max(0, left)))
        return found

    def _search(self, searches: Sequence[Search]) -> None:
        """Run searches with the same options; one that fails does not fail the others."""
        searches = [search for search in searches if not search.future.cancelled()]
        if len(searches) < 2 or not self._search_together(searches):
            for search in searches:
                _settle(search.future, partial(self._searched, search.queries, search.options))

    def _search_together(self, searches: Sequence[Search]) -> bool:
        """Run searches in one call; false if it fails or warns, perhaps because of one of them."""
        queries = [query for search in searches for query in search.queries]
        try:
            found, warnings = self._searched(queries, searches[0].options)
        except BaseException:  # the search that fails by itself gets its error
            return False
        if not warnings:
            remaining = iter(found)
            for search in searches:
                hits = list(islice(remaining, len(search.queries)))
                _settle(search.future, partial(tuple, (hits, warnings)))
        return not warnings

    def _searched(
        self, queries: Sequence[str], options: dict[str, Any]
    ) -> tuple[list[Hits], list[str]]:
        with warnings_of(self._index) as warnings:
            found = self._index.search_many(queries, **options)
        self._on_batch(len(queries))
        return found, warnings


@contextmanager
def warnings_of(index: Index) -> Iterator[list[str]]:
    """Collect the warnings of this thread, including those that the index logs only once."""
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


async def answers(
    workers: Mapping[str, Worker], function: Callable[[Index], Result]
) -> dict[str, Result]:
    """What a function returns for each index, without those that cannot be read.

    Raises:
        SemsearchError: none can.
    """
    found: dict[str, Result] = {}
    failed: SemsearchError | None = None
    for name, worker in workers.items():
        try:
            found[name] = await worker.call(function)
        except SemsearchError as error:
            failed = error
    if failed is not None and not found:
        raise failed
    return found


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    """Set the result of a future to what a function returns or raises.

    The function is not called if the future is cancelled, because the client has gone.
    """
    if future.cancelled():
        return
    with suppress(InvalidStateError):  # cancelled meanwhile
        try:
            future.set_result(function())
        except BaseException as error:  # passed on to the request
            _fail(future, error)


def _fail(future: Future[Any], error: BaseException) -> None:
    """Set the exception of a future.

    Asyncio cannot pass on StopIteration, and others that are no `Exception`, such as panics in
    Rust, would end the service.
    """
    if isinstance(error, StopIteration) or not isinstance(error, Exception):
        cause, error = error, RuntimeError(repr(error))
        error.__cause__ = cause
    future.set_exception(error)
