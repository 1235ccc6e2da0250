"""`semsearch serve` as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main, serve_command

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "indexes" / "birds", "hashing") as index:
        index.add([Document("a", "a red bird"), Document("b", "a blue fish")])
    return tmp_path / "indexes" / "birds"


@pytest.fixture
def serve(path):
    """Starts the command in the folder above the indexes; gives its process and its address."""
    processes = []

    def started(*options, **environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "semsearch", "serve", "--port", str(port), *options]
        process = subprocess.Popen(
            command,
            cwd=path.parents[1],
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                get(f"{address}/health")
                return process, address
            except URLError:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
        raise AssertionError("it does not answer")

    yield started
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


def get(address, **headers):
    with urlopen(Request(address, headers=headers), timeout=20) as response:  # noqa: S310
        return json.load(response)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_from_start_to_end(serve, sent):
    process, address = serve()
    hits = get(f"{address}/v1/indexes/birds/search?query=red+bird&k=1")["hits"]
    assert [hit["id"] for hit in hits] == ["a"]
    process.send_signal(sent)
    # Uvicorn ends by the signal that ended it, but for Ctrl-C.
    assert process.wait(timeout=20) == (0 if sent == signal.SIGINT else -sent)
    said = process.stderr.read()
    assert said == f"serving birds at {address}\n"


@pytest.mark.slow
def test_slow_and_dying_clients_hold_nobody_up(serve):
    process, address = serve("--timeout", "1s")
    place = ("127.0.0.1", int(address.rpartition(":")[2]))
    head = (
        "POST /v1/indexes/birds/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    )
    slow = [socket.create_connection(place) for _ in range(20)]
    for one in slow:
        one.sendall(head.encode())
    dying = [socket.create_connection(place) for _ in range(20)]
    for one in dying:
        one.sendall(b"GET /v1/indexes/birds/search?query=red HTTP/1.1\r\nHost: localhost\r\n\r\n")
        one.close()
    assert get(f"{address}/v1/indexes/birds/search?query=red+bird&k=1")["hits"]
    slow[0].settimeout(20)
    assert b" 504 " in slow[0].recv(1000)
    for one in slow:
        one.close()
    assert get(f"{address}/health")["status"] == "ok"
    assert process.poll() is None


@pytest.mark.slow
def test_a_token_from_the_environment(serve):
    _, address = serve(SEMSEARCH_TOKEN="secret")
    with pytest.raises(HTTPError, match="401"):
        get(f"{address}/v1/indexes")
    assert get(f"{address}/v1/indexes", Authorization="Bearer secret")[0]["name"] == "birds"


def run(*arguments, **options):
    return CliRunner().invoke(main, ["serve", *map(str, arguments)], **options)


def test_a_port_that_is_taken(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--index", path, "--port", taken.getsockname()[1])
    assert result.exit_code == 1
    assert result.output.startswith("Error: cannot listen on 127.0.0.1, port ")
    assert result.output.count("\n") == 1


def test_other_machines_are_not_let_in_without_a_token(path):
    result = run("--index", path, "--host", "0.0.0.0", env={"SEMSEARCH_TOKEN": ""})
    assert result.exit_code == 1
    assert "set a token in SEMSEARCH_TOKEN" in result.output


def test_without_an_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run()
    assert result.exit_code == 1
    assert "no index under indexes" in result.output


def test_two_of_one_name(path, tmp_path):
    with Index.create(tmp_path / "other" / "birds", "hashing"):
        pass
    result = run("--index", path, "--index", tmp_path / "other" / "birds")
    assert result.exit_code == 1
    assert "two indexes are called 'birds'" in result.output


def test_without_the_extra(path, monkeypatch):
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None)
    result = run("--index", path)
    assert result.exit_code == 1
    assert "pip install 'semsearch[serve]'" in result.output
