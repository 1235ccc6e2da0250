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

KILL = getattr(signal, "SIGKILL", None)
pytestmark = pytest.mark.skipif(KILL is None, reason="services are stopped by POSIX signals")
SENTENCE = "A red bird sings in the garden while it rains. "
SEARCH = f"{BIRDS}/search?query=red+bird&k=1"


class Service:
    """`semsearch serve` as a process that serves an index."""

    def __init__(self, path, *options, **environment):
        command = [sys.executable, "-m", "semsearch", "serve", "--index", str(path), "--port", "0"]
        streams = {"stderr": subprocess.PIPE, "text": True}
        environment = {**os.environ, **environment}
        self.process = subprocess.Popen([*command, *options], env=environment, **streams)
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


@pytest.mark.parametrize(
    "sent", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)]
)
def test_from_start_to_end_at_all_addresses(path, sent):
    """Requests with the token are answered under the name of this machine."""
    service = Service(path, "--host", "0.0.0.0", SEMSEARCH_TOKEN="secret")
    assert "serving birds\n" in service.messages
    assert service.request("GET", "/v1/indexes")[0] == 401
    _, answer = service.request("GET", SEARCH, Authorization="Bearer secret")
    assert [hit["id"] for hit in answer["hits"]] == ["a"]
    # Uvicorn raises the signal that stopped it again, except for Ctrl-C.
    assert service.end(sent) == (0 if sent == signal.SIGINT else -sent)


def put_request(name, text):
    """The bytes of a request that writes a document."""
    body = json.dumps({"text": text}).encode()
    head = f"PUT {BIRDS}/documents?id={name} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_clients_that_die_or_send_too_slowly_leave_whole_documents_or_none(path):
    service = Service(path, "--writable", "--timeout", "5")
    for n in range(5):
        for name, missing in ((f"whole-{n}", 0), (f"half-{n}", 30)):
            request = put_request(name, f"{n} {SENTENCE}")
            client = socket.create_connection(service.place)
            client.sendall(request[: len(request) - missing])
            # The connection is reset instead of closed.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    client = socket.create_connection(service.place, timeout=30)
    client.sendall(put_request("too-slow", SENTENCE)[:-10])
    assert service.put("last", SENTENCE) == 204  # earlier requests have been handled by now
    assert b" 504 " in client.recv(1000)
    client.close()
    for n in range(5):
        assert service.text(f"half-{n}") is None
        assert service.text(f"whole-{n}") in (None, f"{n} {SENTENCE}")
    assert service.text("too-slow") is None
    service.end()


@pytest.mark.parametrize("sent", [KILL, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_acknowledged_writes_survive(tmp_path, seed, sent):
    """Eight clients are writing when the service is killed or stopped."""
    chance = random.Random(seed)
    path = tmp_path / "birds"
    Index.create(path, "hashing").close()
    tried, acknowledged = set(), set()
    service = Service(path, "--writable")

    def write(client):
        for n in range(1000):
            name = f"{client}-{n}"
            tried.add(name)
            try:
                status = service.put(name, f"{name} {SENTENCE}")
            except (OSError, http.client.HTTPException):  # the service is gone
                return
            if status == 503:  # the service is closing
                return
            assert status == 204
            acknowledged.add(name)

    enough = chance.randint(5, 10)
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


def test_mistakes_before_it_starts(path, tmp_path, monkeypatch):
    def gone(spec):
        raise EncoderError(f"no model {spec}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("semsearch.encoders.current_fingerprint", gone)
    for options, named in (
        ([], "indexes"),
        (["--index", path, "--host", "0.0.0.0"], "SEMSEARCH_TOKEN"),
        (["--index", path, "--port", 0], "hashing"),
    ):
        command = ["serve", *map(str, options)]
        result = CliRunner().invoke(main, command, env={"SEMSEARCH_TOKEN": ""})
        assert (result.exit_code, result.output.count("\n")) == (1, 1)
        assert named in result.output
