"""Nothing is lost when clients die or are slow, or the service is killed while it writes."""

from __future__ import annotations

import http.client
import json
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from click.testing import CliRunner

from semsearch import Index
from semsearch.cli import main

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="services are stopped by POSIX signals"
)

KILL = getattr(signal, "SIGKILL", None)

DOCUMENTS = "/v1/indexes/birds/documents"
SENTENCE = "A red bird sings in the garden while it rains. "


class Service:
    """`semsearch serve` as a process."""

    def __init__(self, index, *options):
        command = [sys.executable, "-m", "semsearch", "serve", "--index", str(index), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--writable", *options], stderr=subprocess.PIPE, text=True
        )
        lines = map(re.compile(r"http://(\S+):(\d+)").search, self.process.stderr)
        found = next(filter(None, lines))
        self.place = (found[1], int(found[2]))

    def request(self, method, path, body=None):
        """The status and the JSON of a response."""
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content else None
        finally:
            connection.close()

    def put(self, name, text):
        return self.request("PUT", f"{DOCUMENTS}?id={name}", json.dumps({"text": text}))[0]

    def text(self, name):
        """The text of a document; None if there is no such document."""
        status, document = self.request("GET", f"{DOCUMENTS}?id={name}")
        assert status in (200, 404)
        return document["text"] if status == 200 else None

    def end(self, sent=KILL):
        self.process.send_signal(sent)
        self.process.wait(timeout=60)
        self.process.stderr.close()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "birds"
    Index.create(path, "hashing").close()
    return path


@pytest.fixture(scope="module")
def service(index):
    """A service that waits five seconds for a request body."""
    service = Service(index, "--timeout", "5")
    yield service
    service.end()


def put_request(name, text):
    """The bytes of a request that writes a document."""
    body = json.dumps({"text": text}).encode()
    head = (
        f"PUT {DOCUMENTS}?id={name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    )
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


def test_clients_that_die_leave_whole_documents_or_none(service):
    for n in range(5):
        for name, missing in ((f"whole-{n}", 0), (f"half-{n}", 30)):
            request = put_request(name, f"{n} {SENTENCE}")
            client = socket.create_connection(service.place)
            client.sendall(request[: len(request) - missing])
            # The connection is reset instead of closed.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    assert service.put("last", SENTENCE) == 204  # earlier requests have been handled by now
    assert [service.text(f"half-{n}") for n in range(5)] == [None] * 5
    for n in range(5):
        assert service.text(f"whole-{n}") in (None, f"{n} {SENTENCE}")


def test_client_that_sends_too_slowly_times_out_and_writes_nothing(service):
    client = socket.create_connection(service.place, timeout=30)
    client.sendall(put_request("too-slow", SENTENCE)[:-10])
    assert service.put("meanwhile", SENTENCE) == 204
    assert b" 504 " in client.recv(1000)
    client.close()
    assert service.text("too-slow") is None


@pytest.mark.parametrize(
    ("sent", "times"), [(KILL, 1), pytest.param(signal.SIGTERM, 2, marks=pytest.mark.nightly)]
)
def test_acknowledged_writes_survive(tmp_path, seed, sent, times):
    """Eight clients are writing when the service is killed or stopped."""
    chance = random.Random(seed)
    path = tmp_path / "birds"
    with Index.create(path, "hashing"):
        pass
    tried, acknowledged = set(), set()
    for round_ in range(times):
        service = Service(path)

        def write(client, service=service, round_=round_):
            for n in range(1000):
                name = f"{round_}-{client}-{n}"
                tried.add(name)
                try:
                    status = service.put(name, f"{name} {SENTENCE}")
                except (OSError, http.client.HTTPException):  # the service is gone
                    return
                if status == 503:  # the service is closing
                    return
                assert status == 204
                acknowledged.add(name)

        enough = len(acknowledged) + chance.randint(5, 10)
        with ThreadPoolExecutor(8) as clients:
            writing = [clients.submit(write, client) for client in range(8)]
            while len(acknowledged) < enough and not any(one.done() for one in writing):
                time.sleep(0.001)
            time.sleep(chance.random() / 20)
            service.end(sent)
            wait(writing)
        for one in writing:
            one.result()
        assert len(acknowledged) >= enough
    result = CliRunner().invoke(main, ["verify", "--index", str(path)])
    assert result.exit_code == 0, result.output
    with Index.open(path) as index:
        found = {document.id: document.text for document in index}
    assert acknowledged <= found.keys() <= tried
    assert all(text == f"{name} {SENTENCE}" for name, text in found.items())
