"""One thread an index: queries that come while it searches are encoded together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from semsearch.index import Index
from semsearch.records import Hits

#: How many requests are answered at once.
BATCH = 32

Result = TypeVar("Result")


@dataclass(eq=False)
class Search:
    """Queries of one request.

    Args:
        queries: texts.
        options: of `Index.search_many`.
        future: of the answers.
    """

    queries: Sequence[str]
    options: dict[str, Any]
    future: Future[list[Hits]] = field(default_factory=Future)


@dataclass(eq=False)
class Call:
    """Anything else that is done with the index."""

    function: Callable[[Index], Any]
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """Searches an index in a thread of its own.

    A request waits for the batch before it, and for nothing else: no timer holds it back.

    Args:
        index: which the thread alone uses from now on.
        on_batch: is told how many queries were encoded together.
    """

    def __init__(self, index: Index, on_batch: Callable[[int], None] = lambda size: None) -> None:
        self._index = index
        self._on_batch = on_batch
        self._queue: SimpleQueue[Search | Call | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=f"semsearch {index.path}", daemon=True)
        self._thread.start()

    async def search(self, queries: Sequence[str], options: dict[str, Any]) -> list[Hits]:
        """The answers to queries, in their order; see `Index.search_many`."""
        asked = Search(queries, options)
        self._queue.put(asked)
        return await asyncio.wrap_future(asked.future)

    async def call(self, function: Callable[[Index], Result]) -> Result:
        """What a function makes of the index."""
        asked = Call(function)
        self._queue.put(asked)
        found: Result = await asyncio.wrap_future(asked.future)
        return found

    def close(self) -> None:
        """Answer what has been asked, then close the index."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        with self._index:
            going = True
            while going:
                asked = [self._queue.get(), *self._waiting()]
                going = None not in asked
                calls = [one for one in asked if isinstance(one, Call)]
                searches: dict[str, list[Search]] = {}
                for one in asked:
                    if isinstance(one, Search) and one.future.set_running_or_notify_cancel():
                        searches.setdefault(repr(sorted(one.options.items())), []).append(one)
                for together in searches.values():
                    self._search(together)
                for call in calls:
                    if call.future.set_running_or_notify_cancel():
                        _settle(call.future, partial(call.function, self._index))

    def _waiting(self) -> list[Search | Call | None]:
        """What else has been asked by now."""
        found: list[Search | Call | None] = []
        while len(found) < BATCH - 1:
            try:
                found.append(self._queue.get_nowait())
            except Empty:
                break
        return found

    def _search(self, together: Sequence[Search]) -> None:
        """Answer searches with the same options; one that fails does not fail the others."""
        queries = [query for one in together for query in one.queries]
        try:
            found = iter(self._index.search_many(queries, **together[0].options))
        except Exception as error:  # any: it is the requests that must hear of it
            if len(together) == 1:
                together[0].future.set_exception(error)
                return
            for one in together:
                self._search([one])
            return
        self._on_batch(len(queries))
        for one in together:
            one.future.set_result([next(found) for _ in one.queries])


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    """Give a future what a function returns or raises."""
    try:
        future.set_result(function())
    except Exception as error:  # any: it is the request that must hear of it
        future.set_exception(error)
