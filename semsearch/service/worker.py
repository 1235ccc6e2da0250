"""One thread an index: queries that come while it searches are encoded together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from semsearch.addresses import Address
from semsearch.index import Index
from semsearch.records import Hits

#: How many requests are answered at once.
BATCH = 32

#: How many seconds a batch waits at most until it is as large as the one before it: clients that
#: have just been answered ask again.
LONGEST_WAIT = 0.005

Result = TypeVar("Result")


class IndexFile(NamedTuple):
    """What tells an index from another one that takes its place later."""

    device: int
    inode: int

    @classmethod
    def now(cls, directory: Path) -> IndexFile | None:
        """That of the index in a directory; None where there is none."""
        if isinstance(directory, Address):
            return None
        try:
            found = (directory / "index.sqlite").stat()
        except OSError:
            return None
        return cls(found.st_dev, found.st_ino)


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

    A request waits for the batch before it and, where that had several, for `LONGEST_WAIT` at most.
    An index that was deleted and made again is opened again.

    Args:
        path: the index.
        on_batch: is told how many queries were encoded together.

    Raises:
        IndexStoreError: it cannot be opened.
    """

    def __init__(self, path: Path, on_batch: Callable[[int], None] = lambda size: None) -> None:
        self.path = path
        self._on_batch = on_batch
        self._queue: SimpleQueue[Search | Call | None] = SimpleQueue()
        # First the file: one that takes its place while it is opened is another one, too.
        self.file = IndexFile.now(path)
        self._index = Index.open(path)
        self._thread = Thread(target=self._work, name=f"semsearch {path}", daemon=True)
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
        asked: list[Search | Call | None] = []
        while None not in asked:
            asked = self._batch(expected=len(asked))
            running = [one for one in asked if one and one.future.set_running_or_notify_cancel()]
            try:
                self._open_what_is_there()
            except Exception as error:  # any: it is the requests that must hear of it
                for one in running:
                    one.future.set_exception(error)
                continue
            searches: dict[str, list[Search]] = {}
            for one in running:
                if isinstance(one, Search):
                    searches.setdefault(repr(sorted(one.options.items())), []).append(one)
            for together in searches.values():
                self._search(together)
            for one in running:
                if isinstance(one, Call):
                    _settle(one.future, partial(one.function, self._index))
        self._index.close()

    def _open_what_is_there(self) -> None:
        """Open the index again if another one has taken its place.

        Raises:
            IndexStoreError: there is none any more, or it cannot be opened.
        """
        file = IndexFile.now(self.path)
        if file != self.file:
            index = Index.open(self.path)
            self._index.close()
            self.file, self._index = file, index

    def _batch(self, expected: int) -> list[Search | Call | None]:
        """What is asked; a moment is waited until that is as much as is expected."""
        found = [self._queue.get()]
        deadline = time.monotonic() + LONGEST_WAIT
        with suppress(Empty):
            while len(found) < BATCH:
                left = deadline - time.monotonic() if len(found) < expected else 0
                found.append(self._queue.get(timeout=max(0, left)))
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
