"""`semsearch serve` as a process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import click
import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import background, main, serve_command
from semsearch.cli.options import Duration

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "indexes" / "birds", "hashing") as index:
        index.add([Document("a", "a red bird"), Document("b", "a blue fish")])
    return tmp_path / "indexes" / "birds"


@pytest.fixture(autouse=True)
def runtime(tmp_path_factory, monkeypatch):
    """Separate folders of sockets and logs for each test; socket paths must be short."""
    place = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    return place / "semsearch"


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


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_from_start_to_end(serve, sent):
    process, address = serve()
    hits = get(f"{address}/v1/indexes/birds/search?query=red+bird&k=1")["hits"]
    assert [hit["id"] for hit in hits] == ["a"]
    process.send_signal(sent)
    # Uvicorn raises the signal that stopped it again, except for Ctrl-C.
    assert process.wait(timeout=20) == (0 if sent == signal.SIGINT else -sent)
    output = process.stderr.read()
    assert output == f"serving birds at {address}\n"


@pytest.mark.slow
def test_slow_and_dying_clients_block_nobody(serve):
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


@pytest.mark.slow
def test_all_addresses(serve):
    """The address that it prints is one that it answers at: requests to 0.0.0.0 are refused."""
    process, address = serve("--host", "0.0.0.0", SEMSEARCH_TOKEN="secret")
    printed = f"http://localhost:{address.rpartition(':')[2]}"
    assert get(f"{printed}/v1/indexes", Authorization="Bearer secret")[0]["name"] == "birds"
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    assert process.stderr.read().splitlines()[-1] == f"serving birds at {printed}"


def command(path, *arguments, before=()):
    """Run semsearch in the folder above the indexes: status, output, messages."""
    done = subprocess.run(
        [sys.executable, *before, "-m", "semsearch", *arguments],
        cwd=path.parents[1],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def in_background(path, runtime):
    """Starts the command in the background; returns its address, process id and log."""
    processes = []

    def started(*options):
        status, output, messages = command(path, "serve", "--background", "--port", "0", *options)
        assert (status, messages) == (0, ""), messages
        found = re.fullmatch(
            r"serving birds at (http://\S+) in process (\d+)\n"
            r"log: (.+)\nto stop it: semsearch serve --stop\n",
            output,
        )
        processes.append(int(found[2]))
        return found[1], int(found[2]), Path(found[3])

    yield started
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("timed out")


needs_unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix system")


@needs_unix
@pytest.mark.slow
def test_in_the_background(path, runtime, in_background):
    alone = command(path, "query", "red bird", "--format", "jsonl")
    address, process, log = in_background()
    assert get(f"{address}/health")["status"] == "ok"
    assert (runtime / f"{process}.sock").exists()
    assert log.stat().st_mode & 0o777 == 0o600
    assert command(path, "query", "red bird", "--format", "jsonl") == alone
    assert (
        command(path, "query", "red", "-k", "0")[2]
        == "Error: k must be at least 1, not 0 [invalid-argument]\n"
    )
    stopped = command(path, "serve", "--stop")
    assert stopped == (0, "", f"stopped serving birds at {address}\n")
    assert list(runtime.iterdir()) == []
    with pytest.raises(URLError):
        get(f"{address}/health")
    nothing = command(path, "serve", "--stop", "--index", "indexes/birds")
    assert nothing == (0, "", "no service of indexes/birds is running\n")
    assert log.read_text() == ""


@needs_unix
@pytest.mark.slow
def test_a_query_that_a_service_answers(path, runtime, in_background, monkeypatch):
    """It imports almost nothing, and looks the same on a terminal."""
    in_background()

    def imported():
        _, hits, messages = command(path, "query", "red bird", before=["-X", "importtime"])
        assert "a red bird" in hits
        lines = messages.splitlines()
        return {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in lines}

    until(lambda: "click" not in imported())  # on a busy machine, it may do without the service
    loaded = imported()
    assert {"semsearch", "socket", "json"} <= loaded
    assert not loaded & {"click", "email", "http", "logging", "numpy", "pathlib", "rich", "typing"}
    monkeypatch.setenv("TERM", "xterm-256color")
    arguments = [["red bird", "--explain", "--mode", "bm25"], ["a\x1b[31m fish", "--format", "csv"]]
    seen = [on_a_terminal(path, *each) for each in arguments]
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    assert seen == [on_a_terminal(path, *each) for each in arguments]
    assert "\x1b[2m" in seen[0]
    assert "\\x1b[31m" in seen[1]


def on_a_terminal(path, *arguments):
    """What `semsearch query` shows on a terminal of 60 columns, without times."""
    termios = pytest.importorskip("termios")
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 60))
    subprocess.run(
        [sys.executable, "-m", "semsearch", "query", *arguments],
        cwd=path.parents[1],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        timeout=60,
        check=True,
    )
    os.close(slave)
    shown = os.read(master, 100_000).decode()
    os.close(master)
    return re.sub(r"\d+\.\d ms", "T ms", shown)


@needs_unix
@pytest.mark.slow
def test_an_index_that_cannot_be_served_in_the_background(path, runtime):
    status, output, messages = command(path, "serve", "--background", "--index", "none")
    assert (status, output) == (1, "")
    assert messages.startswith("Error: no index at none; ")
    assert messages.count("\n") == 1
    assert not runtime.exists()


@needs_unix
@pytest.mark.slow
def test_two_services_one_of_which_is_killed(path, runtime, in_background):
    _, first, _ = in_background("--writable")
    _, second, _ = in_background()
    arguments = ["query", "red bird", "--format", "csv"]
    expected = command(path, *arguments)
    os.kill(second, signal.SIGKILL)
    assert command(path, *arguments) == expected
    assert {file.name for file in runtime.iterdir()} == {f"{first}.sock", f"{second}.sock"}
    os.kill(first, signal.SIGSTOP)  # it accepts connections but does not answer
    assert command(path, *arguments) == expected
    os.kill(first, signal.SIGCONT)
    elsewhere = path / "in a folder without indexes"
    _, _, messages = command(elsewhere, "serve", "--stop")
    assert messages.startswith("stopped serving birds at ")
    assert [file.name for file in runtime.iterdir()] == [f"{second}.sock"]
    assert command(elsewhere, "serve", "--stop") == (0, "", "no service is running\n")


@needs_unix
@pytest.mark.slow
def test_stops_when_idle(path, runtime, in_background):
    address, _, log = in_background("--idle-timeout", "500ms")
    until(lambda: not list(runtime.iterdir()))
    assert log.read_text() == "no request for 0.5 s: stopped\n"
    with pytest.raises(URLError):
        get(f"{address}/health")


@needs_unix
@pytest.mark.slow
def test_without_a_socket(path, tmp_path, runtime, serve):
    (runtime.parent / "semsearch").mkdir(mode=0o755)
    process, address = serve()
    assert get(f"{address}/v1/indexes/birds/search?query=red")["hits"]
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    lines = process.stderr.read().splitlines()
    assert lines[0] == (
        f"`semsearch query` cannot use this service: {runtime} is open to other users"
    )
    assert lines[1:] == [f"serving birds at {address}"]


@needs_unix
@pytest.mark.slow
def test_in_the_background_without_a_socket(path, runtime):
    (runtime.parent / "semsearch").mkdir(mode=0o755)
    status, output, messages = command(path, "serve", "--background", "--port", "0")
    assert (status, messages) == (0, "")
    found = re.search(r" in process (\d+)\n.*\nto stop it: (kill \d+)\n", output)
    assert found[2] == f"kill {found[1]}"
    subprocess.run(found[2].split(), check=True)
    until(lambda: not Path(f"/proc/{found[1]}").exists())


def run(*arguments, **options):
    return CliRunner().invoke(main, ["serve", *map(str, arguments)], **options)


def test_a_port_that_is_taken(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--index", path, "--port", taken.getsockname()[1])
    assert result.exit_code == 1
    assert result.output.startswith("Error: cannot listen on 127.0.0.1, port ")
    assert result.output.count("\n") == 1


def test_other_machines_need_a_token(path):
    result = run("--index", path, "--host", "0.0.0.0", env={"SEMSEARCH_TOKEN": ""})
    assert result.exit_code == 1
    assert "set a token in SEMSEARCH_TOKEN" in result.output


def test_without_an_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run()
    assert result.exit_code == 1
    assert "no index under indexes" in result.output


def test_two_indexes_with_one_name(path, tmp_path):
    with Index.create(tmp_path / "other" / "birds", "hashing"):
        pass
    result = run("--index", path, "--index", tmp_path / "other" / "birds")
    assert result.exit_code == 1
    assert "two indexes are named 'birds'" in result.output


def test_an_index_whose_model_is_gone(tmp_path, write_bert):
    model = write_bert(["bird"])
    with Index.create(tmp_path / "birds", str(model)) as index:
        index.add([Document("a", "bird")])
    model.rename(tmp_path / "elsewhere")
    result = run("--index", tmp_path / "birds", "--port", 0)
    assert result.exit_code == 1
    assert str(model) in result.output
    assert result.output.count("\n") == 1


def test_without_the_extra(path, monkeypatch):
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None)
    result = run("--index", path)
    assert result.exit_code == 1
    assert "pip install 'semsearch[serve]'" in result.output


def test_the_background_needs_unix(path, monkeypatch):
    monkeypatch.delattr(os, "fork", raising=False)
    result = run("--index", path, "--background")
    assert result.exit_code == 1
    assert "--background needs a Unix system" in result.output
    monkeypatch.delattr(os, "geteuid", raising=False)
    result = run("--index", path, "--stop")
    assert result.exit_code == 1
    assert "--stop needs a Unix system" in result.output


@pytest.mark.parametrize("option", [["--port", "0"], ["--background"], ["--allow-host", "x"]])
def test_stop_takes_only_indexes(path, runtime, option):
    """It stops the services of an index at all ports."""
    result = run("--index", path, "--stop", *option)
    assert result.exit_code == 1
    message = f"{option[0]} does not go with --stop, which takes only --index"
    assert result.output == f"Error: {message} [argument-combination]\n"


@needs_unix
def test_logs_of_processes_that_have_ended_are_removed(tmp_path):
    others = {f"serve-{os.getpid()}.log", "serve-mine.log", "other.txt"}
    for name in (*others, "serve-4194305.log"):  # no Linux process id exceeds 4194304
        (tmp_path / name).touch()
    background._remove_old(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == others


@needs_unix
def test_a_log_that_cannot_be_written(path, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    result = run("--index", path, "--background")
    assert result.exit_code == 1
    assert result.output.startswith("Error: cannot write a log in ")
    assert result.output.count("\n") == 1


@needs_unix
def test_stopping_a_service_that_does_not_answer(path, runtime, monkeypatch):
    monkeypatch.setattr(serve_command, "SECONDS_TO_WAIT", 0.05)
    runtime.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(runtime / "7.sock"))
        (runtime / "7.sock").chmod(0o600)
        silent.listen()
        result = run("--index", path, "--stop")
    assert result.exit_code == 1
    assert result.output == "Error: the service in process 7 does not answer [cannot-serve]\n"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("300ms", 0.3), ("2s", 2), ("2 s", 2), ("30m", 1800), ("1.5h", 5400), ("0s", 0)],
)
def test_durations(given, seconds):
    assert Duration().convert(given, None, None) == seconds


@pytest.mark.parametrize("given", ["30", "m", "30 min", "1d", "-1s", ""])
def test_invalid_durations(given):
    with pytest.raises(click.BadParameter, match="is not a time such as 300ms, 2s or 30m"):
        Duration().convert(given, None, None)
