"""The thread of an index: queries that wait are encoded together, and no error ends it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from birds import BIRDS

from semsearch import Index
from semsearch.errors import ArgumentError
from semsearch.records import Hits

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service import worker as module
from semsearch.service.worker import Worker


def test_failing_query_does_not_fail_its_batch(path, monkeypatch):
    sizes = []
    worker = Worker(path, sizes.append)
    started, leave = threading.Event(), threading.Event()

    def busy(index):
        started.set()
        assert leave.wait(10)

    async def asked():
        first = asyncio.create_task(worker.call(busy))
        await asyncio.to_thread(started.wait, 10)
        searches = [
            asyncio.create_task(worker.search([word], {"k": 1}))
            for word in ("bird", "fish", "", "red")
        ]
        await asyncio.sleep(0.05)
        leave.set()
        await first
        return await asyncio.gather(*searches, return_exceptions=True)

    bird, fish, empty, red = asyncio.run(asked())
    worker.close()
    assert bird[0][0][0].document_id == "a"
    assert fish[0][0].query == "fish"
    assert isinstance(empty, ArgumentError)  # does not fail the others
    assert red[0][0].query == "red"
    assert sizes == [1, 1, 1]  # one of the batch failed, so each was encoded alone


def test_waiting_queries_are_encoded_together(path):
    sizes = []
    worker = Worker(path, sizes.append)

    async def asked():
        words = ["bird", "fish", "red"]
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        searches = [worker.search([word], {"k": 1}) for word in words]
        searches.append(worker.search(words, {"k": 2}))
        found = await asyncio.gather(*searches)
        await blocked
        return found

    found = asyncio.run(asked())
    worker.close()
    assert [hits[0].query for hits, _ in found] == ["bird", "fish", "red", "bird"]
    assert sizes == [3, 3]


@pytest.mark.usefixtures("warning_about_fish")
def test_warnings_of_others_in_the_batch_are_not_returned(path):
    worker = Worker(path)

    async def asked():
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        found = await asyncio.gather(*(worker.search([word], {}) for word in ("bird", "fish")))
        await blocked
        return found

    (bird, none), (fish, one) = asyncio.run(asked())
    worker.close()
    assert (bird[0].query, none) == ("bird", [])
    assert (fish[0].query, one) == ("fish", ["about fish"])


def test_batch_waits_for_as_many_requests_as_the_previous_one(path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 60)
    sizes = []
    worker = Worker(path, sizes.append)

    async def asked():
        search = lambda word: worker.search([word], {"k": 1})  # noqa: E731
        for _ in range(3):
            await search("bird")  # no wait after a single request
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        await asyncio.gather(search("bird"), search("fish"), blocked)
        first = asyncio.create_task(search("bird"))
        await asyncio.sleep(0.05)
        assert not first.done()
        await asyncio.gather(first, search("fish"))
        monkeypatch.setattr(module, "LONGEST_WAIT", 0.01)
        await search("red")  # the second request does not come

    asyncio.run(asyncio.wait_for(asked(), 30))
    worker.close()
    assert sizes == [1, 1, 1, 2, 2, 1]


def test_requests_that_are_cancelled_in_a_batch_are_not_computed(path, monkeypatch):
    started, leave = threading.Event(), threading.Event()
    searched = []

    def search_many(index, queries, **options):
        searched.append(queries)
        started.set()
        assert leave.wait(10)
        return [Hits(query) for query in queries]

    monkeypatch.setattr(Index, "search_many", search_many)
    worker = Worker(path)

    async def asked():
        blocked = asyncio.create_task(worker.call(lambda index: time.sleep(0.2)))
        await asyncio.sleep(0.05)
        options = ({}, {"k": 1}, {"explain": True}, {"explain": True})
        requests = [asyncio.create_task(worker.search(["red"], each)) for each in options]
        requests.append(asyncio.create_task(worker.call(lambda index: searched.append("called"))))
        await asyncio.to_thread(started.wait, 10)  # the others are in the batch of the first one
        for request in (requests[0], requests[1], requests[2], requests[4]):
            request.cancel()
        await asyncio.sleep(0)
        leave.set()
        await blocked
        return await requests[3]

    assert asyncio.run(asked()) == ([Hits("red")], [])
    worker.close()
    assert searched == [["red"], ["red"]]  # the first one, which had begun, and the last search


@pytest.mark.parametrize("error", [type("PanicException", (BaseException,), {}), StopIteration])
def test_any_error_leaves_the_service_running(client, monkeypatch, error):
    def fail(*_, **__):
        raise error("panicked")

    for name in ("search_many", "more_like"):
        with monkeypatch.context() as patch:
            patch.setattr(Index, name, fail)
            for place in ("search?query=red", "documents/a/similar"):
                status = client.get(f"{BIRDS}/{place}").status_code
                assert status == (500 if ("search" in place) == (name == "search_many") else 200)
    assert client.get(f"{BIRDS}/search?query=red").status_code == 200
