"""`semsearch query` prints the same with a service as without, or the service declines."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main, service_client
from semsearch.cli.service_client import find_answer, program, sockets

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
if not hasattr(socket, "AF_UNIX"):
    pytest.skip("this system has no Unix sockets", allow_module_level=True)

from fastapi import FastAPI

from semsearch.cli import local_requests
from semsearch.cli.local_requests import LocalRequests
from semsearch.cli.local_socket import LocalSocket
from semsearch.cli.server import Server
from semsearch.service import Settings, create_app

TEXTS = [
    ("a", "A red bird sings in the tree. It sings at dawn.", "Robin", 1999, ["red", "small"]),
    ("b", "A blue fish swims in the river.", "Carp", 2005, []),
    ("c", "A red fish swims in the sea.", None, 2010, ["red"]),
    ("d", "a RED fish swims in the sea", "Snapper", 2011, ["red"]),
    ("e", "Ships cross, \x1b[31mslowly\x1b[0m.\nSecond line", 'S, "hip"', 1951, []),
    ("f", "鳥が木で歌う", "歌", 2020, ["鳥"]),
]
DOCUMENTS = [
    Document(name, text, title, {"year": year, "tags": tags, "note": {"n": year}})
    for name, text, title, year, tags in TEXTS
]

#: Arguments that a service answers.
ANSWERED = """
red fish -k 2
red fish -k 3 --where 'year >= 2005' --format jsonl
red fish --where "tags = 'rde'"
red fish --where "year > 2000" --format csv
'"a fish" -river' --mode bm25 --format jsonl
red fish --require 'a fish'
red fish --mode hybrid --fusion rrf --format csv
red fish --mode hybrid --dense-weight 0.9 --format jsonl
red fish --space wide --mode hybrid
red fish --min-score 0.99
red fish --per-document 2 --format jsonl
red fish --fold-duplicates
red fish --mmr 0.5 --format csv
red fish --also night --also 'a bird' --format jsonl
red fish --like a --like b --unlike e --format jsonl
red fish --explain --mode hybrid
red fish --explain --mode hybrid --format jsonl
red fish --show year --show tags --show id --show note
--like a
--also fish --also sea
-- '-fish'
""".strip().splitlines()  # fmt: skip

#: Arguments that are left to the command: they need files, a model or a user, or are invalid.
DECLINED = (
    """
red fish --rerank model
red fish --rerank-budget 300ms
red fish --rerank-depth 7
--queries questions.txt
red fish more words --queries x
-kh
red fish --version
red fish --unknown
red fish -k many
red fish -k 1 -k 2
red fish --where 'yaer > 1'
red fish --like z
red fish --index elsewhere
red fish --index ''
red fish --encoder hashing
red fish --encoding latin-1
''
-- -x --mode bm25
""".strip().splitlines()
    + [""]
)


def split(line):
    """The arguments of a line; the words before the options are the query."""
    words = shlex.split(line)
    first = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return ([" ".join(words[:first])] if first else []) + words[first:]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A runtime directory for the services of this module only."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("run")
        patch.setenv("XDG_RUNTIME_DIR", str(place))
        yield place


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Wait for the service on a busy machine."""
    monkeypatch.setattr(service_client, "SECONDS", 60.0)


@contextmanager
def serving(indexes, version=None, **settings):
    """A service in a thread of this process; yields its server and port."""
    local = LocalSocket()
    settings = Settings(socket=str(local.path), **settings)
    version = version or program()
    app = create_app(
        indexes,
        settings,
        lambda workers: LocalRequests(version, "http://here", workers).routes(),
    )
    ready = threading.Event()
    server = Server(app, local, None, ready.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=[[listener]])
        thread.start()
        try:
            assert ready.wait(20)
            yield server, port
        finally:
            server.should_exit = True
            thread.join()


def filled(path):
    with Index.create(path, ["hashing", "hashing:512"]) as index:
        index.add(DOCUMENTS)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The working directory of commands, with two indexes, one of which is served."""
    place = tmp_path_factory.mktemp("here")
    filled(place / "indexes" / "birds")
    filled(place / "elsewhere")
    return place


@pytest.fixture(scope="module")
def service(runtime, folder):
    with serving({"birds": folder / "indexes" / "birds"}) as found:
        yield found


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    monkeypatch.setenv("COLUMNS", "90")
    return folder


def by_itself(*arguments):
    result = CliRunner().invoke(main, ["query", *arguments])
    assert result.exit_code == 0, result.output
    return {"output": result.stdout, "messages": result.stderr}


def without_times(answer):
    """An answer without the milliseconds of its stages."""
    pattern = r"(\d+\.\d+)(?= ms)|(?<=\"milliseconds\": )[\d.e-]+"
    return {name: re.sub(pattern, "T", answer[name]) for name in ("output", "messages")}


def space_names(folder):
    with Index.open(folder / "indexes" / "birds") as index:
        return [space.name for space in index.spaces()]


@pytest.mark.parametrize("line", ANSWERED)
def test_answer_equals_that_of_the_command(service, here, line):
    arguments = [space_names(here)[1] if word == "wide" else word for word in split(line)]
    expected = without_times(by_itself(*arguments))
    for _ in range(2):  # the messages are repeated
        answer = find_answer(arguments)
        assert answer is not None, arguments
        assert without_times(answer) == expected


def test_all_options_are_covered():
    from semsearch.cli.query_command import command

    used = {word for line in [*ANSWERED, *DECLINED] for word in split(line)}
    for parameter in command.params:
        assert not parameter.opts[0].startswith("-") or used & set(parameter.opts), parameter.opts


@pytest.mark.parametrize("line", DECLINED)
def test_service_declines(service, here, line):
    assert find_answer(split(line)) is None


def test_ways_to_name_the_index(service, here, monkeypatch):
    expected = by_itself("fish")["output"]
    for arguments in (
        ["--index", "indexes/birds"],
        ["--index", str(here / "indexes" / "birds")],
        ["--index", "indexes/../indexes/birds/"],
    ):
        assert find_answer(["fish", *arguments])["output"] == expected
    monkeypatch.chdir("indexes")
    assert find_answer(["fish"]) is None
    assert find_answer(["fish", "--index", "birds"])["output"] == expected


@pytest.mark.parametrize(
    "environment",
    [
        {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": "60"},
        {"FORCE_COLOR": "1", "NO_COLOR": "1"},
        {"TTY_COMPATIBLE": "1", "TERM": "dumb"},
        {"COLUMNS": "0"},
    ],
)
def test_width_and_colours_are_those_of_the_client(service, here, monkeypatch, environment):
    for name in ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    arguments = ["red fish", "--mode", "hybrid", "--explain", "--show", "year"]
    answer = without_times(find_answer(arguments))
    assert answer == without_times(by_itself(*arguments))
    assert ("\x1b[" in answer["output"]) == ("FORCE_COLOR" in environment)


class TestGuards:
    def test_socket_needs_no_token(self, runtime, here, monkeypatch, tmp_path_factory):
        """A user of the socket can read the token from the process."""
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("own")))
        with serving({"birds": here / "indexes" / "birds"}, token="secret") as (_, port):
            assert find_answer(["fish"]) is not None
            assert status(("127.0.0.1", port), "/v1/indexes") == 401
            assert status(sockets()[0], "/v1/indexes") == 200

    def test_host_and_origin_are_checked(self, service):
        (path,) = sockets()
        assert status(path, "/health", "Host: evil.example") == 403
        assert status(path, "/health", "Host: localhost", "Origin: http://evil.example") == 403

    def test_socket_permissions(self, service, runtime):
        (path,) = (runtime / "semsearch").iterdir()
        assert path.suffix == ".sock"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700

    def test_local_routes_are_hidden_from_the_network(self, service):
        place = ("127.0.0.1", service[1])
        assert status(place, "/health") == 200
        for target in ("/local/query", "/local/stop", "/local/none"):
            assert status(place, target) == 404
        assert status(sockets()[0], "/local/query") == 405  # it is a POST


def status(place, target, *headers):
    """The status of a GET request to a socket or an address."""
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    lines = [f"GET {target} HTTP/1.0", *(headers or ["Host: localhost"]), "", ""]
    with socket.socket(family) as connection:
        connection.settimeout(20)
        connection.connect(place)
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.recv(100).split()[1])


class TestNoWrongAnswers:
    @pytest.fixture
    def birds(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
        return filled(tmp_path / "indexes" / "birds")

    @pytest.fixture
    def own(self, runtime, birds, monkeypatch, tmp_path_factory):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("own")))
        with serving({"birds": birds}) as (server, _):
            yield server

    def test_recreated_index(self, own, birds):
        assert "Robin" in find_answer(["bird"])["output"]
        shutil.rmtree(birds)
        assert find_answer(["bird"]) is None
        with Index.create(birds, "hashing:64") as index:
            index.add([Document("new", "a green bird", "Finch")])
        answer = find_answer(["bird"])
        assert answer["output"] == by_itself("bird")["output"]
        assert "Finch" in answer["output"]

    def test_a_commit_of_another_process(self, own, birds):
        find_answer(["bird"])
        with Index.open(birds) as index:
            index.add([Document("new", "a green bird", "Finch", {"colour": "green"})])
            index.delete(["a"])
        arguments = ["bird", "--where", "colour = 'green'", "--format", "csv"]
        assert find_answer(arguments)["output"] == by_itself(*arguments)["output"]

    def test_another_model_under_the_same_name(self, own, birds, monkeypatch):
        monkeypatch.setattr(local_requests, "current_fingerprint", lambda spec: "another")
        assert find_answer(["bird"]) is None
        assert find_answer(["bird", "--mode", "bm25"]) is not None  # needs no model

    def test_internal_error_of_the_service(self, own, birds, monkeypatch):
        def broken(*arguments, **options):
            raise RuntimeError("a fault")

        monkeypatch.setattr("semsearch.index.Index.search", broken)
        assert find_answer(["bird"]) is None


def test_idle_timeout(monkeypatch):
    """A service is not idle during a request, nor if one came since the last tick."""
    now = 100.0
    # Not `time.monotonic` itself, which the event loops of other threads use.
    monkeypatch.setattr("semsearch.cli.server.time", SimpleNamespace(monotonic=lambda: now))
    server = Server(FastAPI(), None, 10.0, lambda: None)
    server.config.load()
    server._last_busy = now

    def has_idled(seconds):
        nonlocal now
        now += seconds
        return asyncio.run(server.on_tick(1))

    assert not has_idled(9)
    server.server_state.total_requests += 1
    assert not has_idled(9)
    assert not has_idled(9)
    task = object()
    server.server_state.tasks.add(task)
    assert not has_idled(20)
    server.server_state.tasks.remove(task)
    assert not has_idled(9)
    assert has_idled(2)
    server._idle_seconds = None
    assert not has_idled(1e9)
    server.should_exit = True
    assert has_idled(0)
