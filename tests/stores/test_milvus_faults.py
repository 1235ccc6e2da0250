"""Crashes and restarts of a server, a full disk, a slow and unreliable network."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
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


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 400 MB, of which a new server takes 290."""
    folder = tmp_path / "server" / "data"
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=400m", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_of_the_server(make_server, small_disk, expected):
    """The server exits; once there is space again, it has every acknowledged document."""
    ballast, acknowledged = small_disk / "ballast", []
    server = make_server(small_disk.parent)

    def fill():
        with contextlib.suppress(OSError):  # the server writes, too, and may fill the disk first
            ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free))
        index._store._connection.timeout = 2

    try:
        with Index.create(server.address(), "hashing:64") as index:
            with pytest.raises(IndexStoreError):
                index.add(with_event(800, fill), on_batch=acknowledged.append)
            server.kill()
            ballast.unlink()
            server.restart()
            index._store._connection.timeout = 90
            held = [document.id for document in index]
            count = acknowledged[-1].documents
            assert held[:count] == [document.id for document in DOCUMENTS[:count]]
            check_sound(index, expected)
    finally:
        server.kill()


class Network:
    """A TCP proxy that delays data, breaks connections, or drops everything."""

    def __init__(self, port):
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.delay = 0.0
        self.is_dead = False
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self):
        """Break all connections."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self):
        self._listening.close()
        self.drop()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source, target):
        with contextlib.suppress(OSError), source:
            while data := source.recv(1 << 16):
                time.sleep(self.delay)
                if not self.is_dead:
                    target.sendall(data)


def test_a_slow_network_that_drops_connections(server, expected, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_MILVUS_TIMEOUT", "60")
    network = Network(server.port)
    network.delay = 0.02
    stop = threading.Event()

    def drop_now_and_then():
        while not stop.wait(1):
            network.drop()

    dropping = threading.Thread(target=drop_now_and_then)
    dropping.start()
    try:
        with Index.create(server.address(port=network.port), "hashing:64") as index:
            assert index.add(DOCUMENTS).added == len(DOCUMENTS)
            check_sound(index, expected)
            stop.set()
            dropping.join()
            network.is_dead = True  # everything is dropped silently
            index._store._connection.timeout = 2
            with pytest.raises(IndexStoreError):
                index.search("amber")
    finally:
        stop.set()
        network.close()
