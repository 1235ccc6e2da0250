"""The thread of an index: queries that wait are encoded together, and no error ends it."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager

import pytest
from birds import BIRDS

from semsearch import Document, Index
from semsearch.errors import ArgumentError, EncoderError, IndexStoreError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service import worker as module
from semsearch.service.worker import Worker
from semsearch.storage.sqlite.database import Database


@asynccontextmanager
async def busy(worker):
    """Keep a worker busy for a block: the requests that begin in it wait together."""
    started, leave = threading.Event(), threading.Event()

    def wait(index):
        started.set()
        assert leave.wait(10)

    blocked = asyncio.create_task(worker.call(wait))
    await asyncio.to_thread(started.wait, 10)
    yield
    await asyncio.sleep(0)  # the tasks of the block begin
    leave.set()
    await blocked


def answers(worker, *searches):
    """The answers to searches that wait together, or their errors."""

    async def asked():
        async with busy(worker):
            tasks = [asyncio.create_task(worker.search(*one)) for one in searches]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(asked())


@pytest.fixture
def sizes(monkeypatch):
    """The numbers of queries that the worker encodes together."""
    sizes, search_many = [], Index.search_many

    def counted(index, queries, **options):
        found = search_many(index, queries, **options)
        sizes.append(len(queries))
        return found

    monkeypatch.setattr(Index, "search_many", counted)
    return sizes


@pytest.fixture
def worker(path):
    worker = Worker(path)
    yield worker
    worker.close()


def test_waiting_queries_are_encoded_together(worker, sizes):
    words = ["bird", "fish", "red"]
    found = answers(worker, *(([word], {"k": 1}) for word in words), (words, {"k": 2}))
    assert [hits[0].query for hits, _ in found] == ["bird", "fish", "red", "bird"]
    assert sizes == [3, 3]
    # If one of a batch fails, each is encoded alone.
    bird, empty, red = answers(worker, *(([word], {"k": 1}) for word in ("bird", "", "red")))
    assert bird[0][0][0].document_id == "a"
    assert isinstance(empty, ArgumentError)
    assert red[0][0].query == "red"
    assert sizes == [3, 3, 1, 1]


def test_warnings_of_others_in_the_batch_are_not_returned(worker, monkeypatch):
    search_many = Index.search_many

    def warned(index, queries, **options):
        if "fish" in queries:
            logging.getLogger("semsearch.index").warning("about fish")
        return search_many(index, queries, **options)

    monkeypatch.setattr(Index, "search_many", warned)
    (bird, none), (fish, one) = answers(worker, (["bird"], {}), (["fish"], {}))
    assert (bird[0].query, none) == ("bird", [])
    assert (fish[0].query, one) == ("fish", ["about fish"])


def test_batch_waits_for_as_many_requests_as_the_previous_one(worker, sizes, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 60)

    async def asked():
        search = lambda word: worker.search([word], {"k": 1})  # noqa: E731
        for _ in range(3):
            await search("bird")  # no wait after a single request
        async with busy(worker):
            both = [asyncio.create_task(search(word)) for word in ("bird", "fish")]
        await asyncio.gather(*both)
        first = asyncio.create_task(search("bird"))
        await asyncio.sleep(0.05)
        assert not first.done()
        await asyncio.gather(first, search("fish"))
        monkeypatch.setattr(module, "LONGEST_WAIT", 0.01)
        await search("red")  # the second request does not come

    asyncio.run(asyncio.wait_for(asked(), 30))
    assert sizes == [1, 1, 1, 2, 2, 1]


def test_requests_that_are_cancelled_while_they_wait_are_not_computed(worker, sizes):
    async def asked():
        async with busy(worker):
            options = ({}, {"k": 1}, {"explain": True}, {"explain": True})
            requests = [asyncio.create_task(worker.search(["red"], each)) for each in options]
            requests.append(asyncio.create_task(worker.search(["bird", "fish"], {})))
            await asyncio.sleep(0)
            for request in requests[:3]:
                request.cancel()
        return await asyncio.gather(*requests, return_exceptions=True)

    *cancelled, explained, both = asyncio.run(asked())
    assert [type(error) for error in cancelled] == [asyncio.CancelledError] * 3
    assert explained[0][0].query == "red"
    assert [hits.query for hits in both[0]] == ["bird", "fish"]
    assert sorted(sizes) == [1, 2]


def test_requests_that_wait_fail_when_the_worker_closes(path):
    worker = Worker(path)

    async def asked():
        async with busy(worker):
            waiting = asyncio.create_task(worker.search(["red"], {}))
            await asyncio.sleep(0)
            closing = asyncio.create_task(asyncio.to_thread(worker.close))
            await asyncio.sleep(0.05)
        await closing
        return await asyncio.gather(waiting, worker.search(["red"], {}), return_exceptions=True)

    assert [type(error) for error in asyncio.run(asked())] == [IndexStoreError] * 2


@pytest.mark.parametrize(
    ("error", "status"),
    [(type("PanicException", (BaseException,), {}), 500), (RuntimeError, 500), (EncoderError, 503)],
)
def test_any_error_leaves_the_service_running(client, monkeypatch, error, status):
    def fail(*_, **__):
        raise error("of the model")

    for name, place in (("search_many", "search?query=red"), ("more_like", "similar?id=a")):
        with monkeypatch.context() as patch:
            patch.setattr(Index, name, fail)
            response = client.get(f"{BIRDS}/{place}")
        assert response.status_code == status
        assert ("of the model" in response.text) == (status == 503)  # no internals
        assert client.get(f"{BIRDS}/{place}").status_code == 200


@pytest.mark.parametrize("options", [{}, {"explain": True}])
def test_abandoned_searches_end_early(worker, monkeypatch, options):
    """SQLite is interrupted in a query without an end, and the next search is answered."""
    begun, ended = threading.Event(), []
    search_many = Index.search_many

    def endless(index, queries, **options):
        if "endless" not in queries:
            return search_many(index, queries, **options)
        count = (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
        )
        begun.set()
        try:
            with Database(index.path).read() as connection:
                connection.exec_driver_sql(count).one()
        except BaseException as error:
            ended.append(error)
            raise

    async def asked():
        search = asyncio.create_task(worker.search(["endless"], options))
        await asyncio.to_thread(begun.wait, 10)
        search.cancel()
        return await worker.search(["bird"], {"k": 1})

    monkeypatch.setattr(Index, "search_many", endless)
    (hits,), _ = asyncio.run(asyncio.wait_for(asked(), 20))
    assert hits[0].document_id == "a"
    assert [type(error).__name__ for error in ended] == ["IndexStoreError"]


def test_writing_does_not_end_early(worker):
    async def asked():
        begun, leave = threading.Event(), threading.Event()

        def write(index):
            begun.set()
            assert leave.wait(10)
            index.add([Document("late", "a green bird")])

        writing = asyncio.create_task(worker.call(write))
        await asyncio.to_thread(begun.wait, 10)
        writing.cancel()
        leave.set()
        return await worker.call(lambda index: index.get("late"))

    assert asyncio.run(asked()).text == "a green bird"
