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
from semsearch.cli import main
from semsearch.errors import EncoderError

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "indexes" / "birds", "hashing") as index:
        index.add([Document("a", "a red bird"), Document("b", "a blue fish")])
    return tmp_path / "indexes" / "birds"


@pytest.fixture
def serve(path):
    """Starts the command in the folder above the indexes; returns its process and address."""
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
        raise AssertionError("the service does not answer")

    yield started
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


def get(address, **headers):
    with urlopen(Request(address, headers=headers), timeout=20) as response:  # noqa: S310
        return json.load(response)


@pytest.mark.nightly
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_from_start_to_end(serve, sent):
    process, address = serve()
    hits = get(f"{address}/v1/indexes/birds/search?query=red+bird&k=1")["hits"]
    assert [hit["id"] for hit in hits] == ["a"]
    process.send_signal(sent)
    # Uvicorn raises the signal that stopped it again, except for Ctrl-C.
    assert process.wait(timeout=20) == (0 if sent == signal.SIGINT else -sent)
    messages = process.stderr.read()
    assert messages.startswith("serving birds\n")
    assert address in messages


def test_all_addresses(serve):
    """Requests with the token are answered under the name of this machine."""
    _, address = serve("--host", "0.0.0.0", SEMSEARCH_TOKEN="secret")
    local = f"http://localhost:{address.rpartition(':')[2]}"
    with pytest.raises(HTTPError, match="401"):
        get(f"{local}/v1/indexes")
    hits = get(
        f"{local}/v1/indexes/birds/search?query=red+bird&k=1", Authorization="Bearer secret"
    )["hits"]
    assert [hit["id"] for hit in hits] == ["a"]


def run(*arguments, **options):
    return CliRunner().invoke(main, ["serve", *map(str, arguments)], **options)


def fails(*arguments, names, **options):
    """Whether a command fails with one line that names something."""
    result = run(*arguments, **options)
    return result.exit_code == 1 and result.output.count("\n") == 1 and names in result.output


def test_other_machines_need_a_token(path):
    options = ["--index", path, "--host", "0.0.0.0"]
    assert fails(*options, env={"SEMSEARCH_TOKEN": ""}, names="SEMSEARCH_TOKEN")


def test_without_an_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fails(names="indexes")


def test_an_index_whose_model_is_gone(path, monkeypatch):
    def gone(spec):
        raise EncoderError(f"no model {spec}")

    monkeypatch.setattr("semsearch.encoders.current_fingerprint", gone)
    assert fails("--index", path, "--port", 0, names="hashing")
