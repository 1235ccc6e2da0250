"""A real server that crashes and is started again."""

from __future__ import annotations

import threading
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexStoreError

WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove"]
DOCUMENTS = [
    Document(f"d{number}", f"{WORDS[number % 6]} {WORDS[number % 5]} {number}", None, {"n": number})
    for number in range(1000)
]


@pytest.mark.nightly
def test_a_server_crash(server):
    """An error; after a restart, reported batches are there, and a sync completes the others."""
    reported = []

    def corpus():
        for number, document in enumerate(DOCUMENTS):
            if number == 800:
                server.kill()
                index._store._connection.timeout = 2
            yield document

    with Index.create(server.address(), "hashing:64") as index:
        started = time.monotonic()
        with pytest.raises(IndexStoreError):
            index.add(corpus(), on_batch=reported.append)
        with pytest.raises(IndexStoreError):
            index.search("amber")
        assert time.monotonic() - started < 60
        index._store._connection.timeout = 90
        restarting = threading.Thread(target=server.restart)
        restarting.start()
        held = [document.id for document in index]  # waits for the server
        restarting.join()
        count = reported[-1].documents
        assert held[:count] == [document.id for document in DOCUMENTS[:count]]
        with index.writer() as writer:
            writer.sync(DOCUMENTS)
            assert writer.verify() == []
        assert sorted(index, key=lambda one: one.metadata["n"]) == DOCUMENTS
        assert index.search(DOCUMENTS[-1].text, 1)[0].score == pytest.approx(1, abs=1e-5)
