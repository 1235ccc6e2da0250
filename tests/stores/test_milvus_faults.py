"""Crashes and restarts of a server."""

from __future__ import annotations

import threading
import time

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexStoreError

pytestmark = pytest.mark.nightly

WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove"]
DOCUMENTS = [
    Document(f"d{number}", f"{WORDS[number % 6]} {WORDS[number % 5]} {number}", None, {"n": number})
    for number in range(1000)
]
QUERIES = ["amber 7", "birch cedar", "fjord"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The local store's results."""
    with Index.create(tmp_path_factory.mktemp("local") / "one", "hashing:64") as index:
        index.add(DOCUMENTS)
        return found(index)


def found(index):
    return [
        [(hit.document_id, round(hit.score, 3)) for hit in index.search(query, 20)]
        for query in QUERIES
    ]


def check_sound(index, expected):
    """Check that after a sync the index contains exactly the corpus."""
    with index.writer() as writer:
        writer.sync(DOCUMENTS)
        assert writer.verify() == []
    assert [document.id for document in index] == [document.id for document in DOCUMENTS]
    assert found(index) == expected


def with_event(number, act):
    """Yield the corpus, calling `act` before document `number`."""
    for place, document in enumerate(DOCUMENTS):
        if place == number:
            act()
        yield document


def test_a_server_crash(server, expected):
    """The error is one clear line, readers wait for a restart, acknowledged documents survive."""
    acknowledged = []

    def kill():
        server.kill()
        index._store._connection.timeout = 2

    with Index.create(server.address(), "hashing:64") as index:
        started = time.monotonic()
        with pytest.raises(IndexStoreError):
            index.add(with_event(800, kill), on_batch=acknowledged.append)
        with pytest.raises(IndexStoreError):
            index.search("amber")
        assert time.monotonic() - started < 60  # retries are bounded
        index._store._connection.timeout = 90
        restarting = threading.Thread(target=server.restart)
        restarting.start()
        held = [document.id for document in index]
        restarting.join()
        count = acknowledged[-1].documents
        assert held[:count] == [document.id for document in DOCUMENTS[:count]]
        check_sound(index, expected)
