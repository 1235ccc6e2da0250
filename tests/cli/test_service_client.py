"""The client that `semsearch query` uses to get its answer from a running service."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress

import pytest

from semsearch.cli import service_client
from semsearch.cli.service_client import find_answer, print_answer, program, sockets

if not hasattr(socket, "AF_UNIX"):
    pytest.skip("this system has no Unix sockets", allow_module_level=True)


@pytest.fixture
def folder(tmp_path_factory, monkeypatch):
    """The socket folder of a user without services."""
    place = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    (place / "semsearch").mkdir(mode=0o700)
    return place / "semsearch"


@pytest.fixture
def index(tmp_path):
    (tmp_path / "index.sqlite").touch()
    return tmp_path


@pytest.fixture
def service(folder):
    """Starts services with a fixed response; returns the list of requests that each receives."""
    listeners, threads = [], []

    def start(answer, name="1.sock", wait=0.0):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / name))
        (folder / name).chmod(0o600)
        listener.listen()
        listeners.append(listener)
        sent = []

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as stream:
                    head = b""
                    while not head.endswith(b"\r\n\r\n"):
                        head += stream.readline()
                    length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                    sent.append((head.decode(), json.loads(stream.read(length))))
                    time.sleep(wait)
                    with suppress(OSError):  # the client did not wait
                        connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return sent

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join()


def response(place, status=200, **content):
    """A service's HTTP response about the index in a folder."""
    found = (place / "index.sqlite").stat()
    content = {
        "output": "hits\n",
        "messages": "note\n",
        "index": {"path": str(place), "device": found.st_dev, "inode": found.st_ino},
        **content,
    }
    return f"HTTP/1.1 {status} X\r\nserver: x\r\n\r\n{json.dumps(content)}".encode()


def test_answer_is_printed(service, index, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "33")
    sent = service(response(index))
    assert print_answer(["a text", "-k", "3"])
    assert capsys.readouterr() == ("hits\n", "note\n")
    ((head, request),) = sent
    assert head.startswith("POST /local/query HTTP/1.0\r\nHost: localhost\r\n")
    assert request["arguments"] == ["a text", "-k", "3"]
    assert request["directory"] == os.getcwd()  # noqa: PTH109 - as the client does
    assert request["environment"]["COLUMNS"] == "33"
    assert request["is_terminal"] is False
    assert request["program"] == program()


@pytest.mark.parametrize(
    "answer",
    [
        lambda index: response(index, 409),  # another program, or another index
        lambda index: b"",  # killed before it answered
        lambda index: response(index)[:-1],  # killed while it answered
        lambda index: b"SSH-2.0-OpenSSH\r\n",
        lambda index: b"HTTP/1.1 200 OK\r\n\r\n{}",
        lambda index: response(index, output="\ud800").replace(b"{", b"\xff{"),
    ],
)
def test_unusable_answer_is_ignored(service, index, answer, capsys):
    sent = service(answer(index))
    assert not print_answer(["x"])
    assert capsys.readouterr() == ("", "")
    assert len(sent) == 1


def test_answer_about_a_replaced_index_is_ignored(service, index):
    answer = response(index)
    service(answer)
    assert find_answer(["x"])["output"] == "hits\n"
    other = index / "other"
    other.touch()
    other.replace(index / "index.sqlite")
    assert find_answer(["x"]) is None
    (index / "index.sqlite").unlink()
    assert find_answer(["x"]) is None


def test_socket_of_a_killed_service_is_skipped(service, folder, index):
    service(response(index), "1.sock")
    time.sleep(0.02)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "2.sock"))
    (folder / "2.sock").chmod(0o600)
    assert sockets() == [str(folder / "2.sock"), str(folder / "1.sock")]
    assert find_answer(["x"])["output"] == "hits\n"


def test_newest_usable_service_answers(service, folder, index):
    service(response(index, output="older\n"), "1.sock")
    time.sleep(0.02)
    service(response(index, output="newer\n"), "0.sock")
    assert find_answer(["x"])["output"] == "newer\n"
    time.sleep(0.02)
    service(response(index, 409), "2.sock")  # of another program
    assert find_answer(["x"])["output"] == "newer\n"


def test_folder_accessible_to_others_is_ignored(service, folder, index):
    service(response(index))
    for mode in (0o750, 0o701):
        folder.chmod(mode)
        assert find_answer(["x"]) is None
    folder.chmod(0o700)
    assert find_answer(["x"]) is not None


def test_socket_accessible_to_others_is_ignored(service, folder, index):
    service(response(index))
    for mode in (0o660, 0o606):
        (folder / "1.sock").chmod(mode)
        assert find_answer(["x"]) is None
    (folder / "1.sock").chmod(0o600)
    folder.rename(folder.with_name("real"))
    folder.symlink_to(folder.with_name("real"))
    assert find_answer(["x"]) is None
    folder.unlink()
    assert find_answer(["x"]) is None


def test_the_runtime_folder(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert service_client.runtime_folder() == "/run/user/7/semsearch"
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", unusable)
        monkeypatch.setenv("TMPDIR", "/elsewhere")
        assert service_client.runtime_folder() == f"/elsewhere/semsearch-{os.geteuid()}"
    monkeypatch.delenv("TMPDIR")
    assert service_client.runtime_folder() == f"/tmp/semsearch-{os.geteuid()}"
    monkeypatch.delattr(os, "geteuid")  # Windows
    assert service_client.runtime_folder() is None
    assert sockets() == []


class TestProgram:
    @pytest.fixture
    def copy(self, tmp_path, monkeypatch):
        """A checkout that can be edited."""
        package = tmp_path / "semsearch"
        (package / "cli" / "__pycache__").mkdir(parents=True)
        (package / "cli" / "service_client.py").touch()
        (package / "page.html").write_text("one")
        monkeypatch.setattr(service_client, "__file__", str(package / "cli" / "service_client.py"))
        return package

    def test_edited_file_changes_it(self, copy):
        before = program()
        os.utime(copy / "page.html", ns=(0, 0))
        assert program() != before
