"""`semsearch serve` as a process; nothing is lost when it or its clients are killed."""

from __future__ import annotations

import http.client
import json
import os
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
from birds import BIRDS
from click.testing import CliRunner

from semsearch import Index
from semsearch.cli import main
from semsearch.errors import EncoderError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")

posix = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="services are stopped by POSIX signals"
)
KILL = getattr(signal, "SIGKILL", None)
SENTENCE = "A red bird sings in the garden while it rains. "
SEARCH = f"{BIRDS}/search?query=red+bird&k=1"


class Service:
    """`semsearch serve` as a process that serves an index."""

    def __init__(self, path, *options, **environment):
        command = [sys.executable, "-m", "semsearch", "serve", "--index", str(path), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.messages = [self.process.stderr.readline()]
        while not (found := re.search(r"http://(\S+):(\d+)", self.messages[-1])):
            assert self.messages[-1], self.messages
            self.messages.append(self.process.stderr.readline())
        self.place = ("127.0.0.1", int(found[2]))

    def request(self, method, path, body=None, **headers):
        """The status and the JSON of a response."""
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        headers |= {"Content-Type": "application/json", "Host": "localhost"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
            return response.status, json.loads(content) if content else None
        finally:
            connection.close()

    def put(self, name, text):
        return self.request("PUT", f"{BIRDS}/documents?id={name}", json.dumps({"text": text}))[0]

    def text(self, name):
        """The text of a document; None if there is no such document."""
        status, document = self.request("GET", f"{BIRDS}/documents?id={name}")
        assert status in (200, 404)
        return document["text"] if status == 200 else None

    def end(self, sent=KILL):
        self.process.send_signal(sent)
        status = self.process.wait(timeout=60)
        self.process.stderr.close()
        return status


@posix
@pytest.mark.nightly
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_from_start_to_end(path, sent):
    service = Service(path)
    assert service.messages[0] == "serving birds\n"
    _, answer = service.request("GET", SEARCH)
    assert [hit["id"] for hit in answer["hits"]] == ["a"]
    # Uvicorn raises the signal that stopped it again, except for Ctrl-C.
    assert service.end(sent) == (0 if sent == signal.SIGINT else -sent)


@posix
def test_all_addresses(path):
    """Requests with the token are answered under the name of this machine."""
    service = Service(path, "--host", "0.0.0.0", SEMSEARCH_TOKEN="secret")
    assert service.request("GET", "/v1/indexes")[0] == 401
    _, answer = service.request("GET", SEARCH, Authorization="Bearer secret")
    assert [hit["id"] for hit in answer["hits"]] == ["a"]
    service.end()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that waits five seconds for a request body."""
    path = tmp_path_factory.mktemp("service") / "birds"
    Index.create(path, "hashing").close()
    service = Service(path, "--writable", "--timeout", "5")
    yield service
    service.end()


def put_request(name, text):
    """The bytes of a request that writes a document."""
    body = json.dumps({"text": text}).encode()
    head = f"PUT {BIRDS}/documents?id={name} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@posix
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


@posix
def test_client_that_sends_too_slowly_times_out_and_writes_nothing(service):
    client = socket.create_connection(service.place, timeout=30)
    client.sendall(put_request("too-slow", SENTENCE)[:-10])
    assert service.put("meanwhile", SENTENCE) == 204
    assert b" 504 " in client.recv(1000)
    client.close()
    assert service.text("too-slow") is None


@posix
@pytest.mark.parametrize(
    ("sent", "times"), [(KILL, 1), pytest.param(signal.SIGTERM, 2, marks=pytest.mark.nightly)]
)
def test_acknowledged_writes_survive(tmp_path, seed, sent, times):
    """Eight clients are writing when the service is killed or stopped."""
    chance = random.Random(seed)
    path = tmp_path / "birds"
    Index.create(path, "hashing").close()
    tried, acknowledged = set(), set()
    for round_ in range(times):
        service = Service(path, "--writable")

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


def fails(*arguments, names, **options):
    """Whether a command fails with one line that names something."""
    result = CliRunner().invoke(main, ["serve", *map(str, arguments)], **options)
    return result.exit_code == 1 and result.output.count("\n") == 1 and names in result.output


def test_mistakes_before_it_starts(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fails(names="indexes")
    options = ["--index", path, "--host", "0.0.0.0"]
    assert fails(*options, env={"SEMSEARCH_TOKEN": ""}, names="SEMSEARCH_TOKEN")

    def gone(spec):
        raise EncoderError(f"no model {spec}")

    monkeypatch.setattr("semsearch.encoders.current_fingerprint", gone)
    assert fails("--index", path, "--port", 0, names="hashing")
