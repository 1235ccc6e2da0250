"""Readers without write permission, beside live and killed writers; copies of indexes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest

from semsearch import Document, Index, Retriever
from semsearch.errors import IndexFormatError, SemsearchError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions and mounts"),
]

DOCUMENTS = 300

#: Commits documents in batches, reports it, and keeps the transaction log open.
WRITER = """
import sys, time
from semsearch import Document, Index
path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Index.create(path, ["hashing:32"]) as index, index.writer() as writer:
    for start in range(first, last, 100):
        numbers = range(start, start + 100)
        writer.upsert(Document(str(n), f"word{n % 5} number {n}") for n in numbers)
    print("committed", flush=True)
    time.sleep(600)
"""

#: Searches by vectors and by words once for each line of its input.
READER = """
import json, sys
from semsearch import Retriever
from semsearch.errors import SemsearchError
try:
    with Retriever.open(sys.argv[1]) as retriever:
        for line in sys.stdin:
            found = [len(retriever.search("number word3", 10_000, mode=mode))
                     for mode in ("semantic", "bm25")]
            print(json.dumps([len(retriever.index), *found]), flush=True)
except SemsearchError as error:
    print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""


def obeying_permissions() -> list[str]:
    """A command prefix that subjects root to file permissions, too."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("without setpriv, root ignores directory permissions")
    capabilities = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]


def mounted_read_only(path) -> list[str]:
    """A command prefix that remounts a directory read-only."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    namespace = ["unshare", "--mount", "--map-root-user"]
    prefix = [*namespace, "sh", "-c", mount, str(path)]
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True).returncode
    ):
        pytest.skip("this system does not allow mounts in a namespace")
    return prefix


@contextmanager
def writer(path, first=0, last=DOCUMENTS):
    """A process that has committed documents and still has the index open."""
    command = [sys.executable, "-c", WRITER, path, str(first), str(last)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "committed\n"
            yield process
        finally:
            process.kill()


@contextmanager
def reader(path, prefix):
    """A reader process; each call of the yielded function queries it once."""
    command = [*prefix, sys.executable, "-c", READER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:

        def ask():
            process.stdin.write("\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def answer(path, prefix):
    with reader(path, prefix) as ask:
        return ask()


@contextmanager
def unwritable(path):
    path.chmod(0o555)
    try:
        yield obeying_permissions()
    finally:
        path.chmod(0o755)


@contextmanager
def on_read_only_file_system(path):
    yield mounted_read_only(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


@pytest.mark.parametrize("read_only", [unwritable, on_read_only_file_system])
class TestReadersWithoutWritePermission:
    """Each sees the last commit: the expected numbers are those that the writer committed."""

    def test_at_rest(self, path, read_only):
        with Index.create(path, ["hashing:32"]) as index:
            index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(DOCUMENTS))
        with read_only(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_beside_a_live_writer(self, path, read_only):
        with writer(path), read_only(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_after_a_killed_writer(self, path, read_only):
        with writer(path) as process:
            process.kill()
        assert (path / "index.sqlite-wal").stat().st_size
        with read_only(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_after_a_killed_writer_whose_shared_memory_is_lost(self, path, read_only):
        with writer(path) as process:
            process.kill()
        (path / "index.sqlite-shm").unlink()
        with read_only(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_after_a_writer_without_write_ahead_log_was_killed(self, path, read_only):
        """Uncommitted changes are in the database; the next process that may write undoes them."""
        with Index.create(path, ["hashing:32"]) as index:
            index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(DOCUMENTS))
        killed = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = DELETE")
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN")
database.execute("DELETE FROM chunks WHERE chunk_id > 150")
os.kill(os.getpid(), signal.SIGKILL)
"""
        subprocess.run([sys.executable, "-c", killed, path / "index.sqlite"])
        assert (path / "index.sqlite-journal").stat().st_size
        with read_only(path) as prefix:
            assert "was interrupted" in answer(path, prefix)
        assert answer(path, []) == [DOCUMENTS] * 3

    def test_a_writer_that_comes_and_goes(self, path, read_only):
        with Index.create(path, ["hashing:32"]) as index:
            index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(100))
        with read_only(path) as prefix, reader(path, prefix) as ask:
            assert ask() == [100] * 3
            path.chmod(0o755)
            with writer(path, 100, 300):
                path.chmod(0o555)
                assert ask() == [300] * 3
            assert ask() == [300] * 3
            path.chmod(0o755)
            with Index.open(path) as index:
                index.add([Document("new", "number")])
            path.chmod(0o555)
            assert ask() == [301] * 3

    def test_a_writer_that_came_and_went_between_two_queries(self, path, read_only):
        """There is no log before or after: SQLite must drop its cached pages all the same."""
        with Index.create(path, ["hashing:32"]) as index:
            index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(100))
        with read_only(path) as prefix, reader(path, prefix) as ask:
            assert ask() == [100] * 3
            path.chmod(0o755)
            with Index.open(path) as index:
                index.delete([str(n) for n in range(7)])
            path.chmod(0o555)
            assert ask() == [93] * 3


@pytest.mark.parametrize(
    "command", [["verify"], ["verify", "--repair"], ["delete", "1"], ["compact"]]
)
@pytest.mark.parametrize("was_killed", [False, True])
def test_writing_without_permission_fails(path, command, was_killed):
    """SQLite opens a read-only database for writing without an error; each write then fails."""
    with Index.create(path, ["hashing:32"]) as index:
        index.add([Document("1", "one")])
    if was_killed:
        (path / "writer.json").write_text('{"process": 1, "since": "then"}', "utf-8")
    with unwritable(path) as prefix:
        command = [*prefix, sys.executable, "-m", "semsearch", *command, "--index", str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == f"Error: cannot write in {path}: Permission denied [unusable-index]\n"
    assert result.stdout == ""


def test_lock_free_reads_during_a_write_are_discarded(path, monkeypatch):
    with Index.create(path, ["hashing:32"]) as index:
        index.add([Document("a", "one")])
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with Index.open(path) as own:
            with pytest.raises(match="try again"), own.read():
                patch.undo()
                with Index.open(path) as other:
                    other.add([Document("b", "two")])


class TestCopies:
    """A database and a log copied at different moments must be refused."""

    def copies(self, path, folder, wanted=40):
        """Copies of an index, taken file by file while another process writes it."""
        for number in range(wanted):
            copy = folder / str(number)
            try:
                shutil.copytree(path, copy)
            except shutil.Error:  # a file was removed while it was copied
                shutil.rmtree(copy, ignore_errors=True)
                continue
            yield copy

    def test_a_copy_made_while_it_was_written(self, path, tmp_path):
        with writer(path):
            shutil.copytree(path, tmp_path / "copy")
        with pytest.raises(IndexFormatError, match="semsearch verify"):
            Index.open(tmp_path / "copy")
        with unwritable(tmp_path / "copy") as prefix:
            assert "was copied while" in answer(tmp_path / "copy", prefix)
        with Index.open(tmp_path / "copy", accept_copy=True) as index, index.writer() as checking:
            assert checking.verify() == []
        with Retriever.open(tmp_path / "copy") as retriever:
            assert len(retriever.search("number", 1000)) == DOCUMENTS

    def test_a_copy_made_at_rest(self, path, tmp_path):
        with writer(path) as process:
            process.kill()
        with Index.open(path):
            pass  # the log is moved into the database
        shutil.copytree(path, tmp_path / "copy")
        with unwritable(tmp_path / "copy") as prefix:
            assert answer(tmp_path / "copy", prefix) == [DOCUMENTS] * 3
        with Index.open(tmp_path / "copy") as index:
            index.add([Document("new", "number")])
            assert len(index) == DOCUMENTS + 1

    def test_a_reader_waits_for_the_first_commit_to_a_copy(self, path, tmp_path, monkeypatch):
        """The log exists before it records the copy's inode; a reader waits for that."""
        with Index.create(path, ["hashing:32"]) as index:
            index.add([Document("a", "one")])
        copy = tmp_path / "copy"
        shutil.copytree(path, copy)
        file = copy / "index.sqlite"
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("UPDATE settings SET value = value + 1 WHERE name = 'revision'")

            def commit(seconds):
                database.execute(
                    "UPDATE settings SET value = ? WHERE name = 'inode'", [file.stat().st_ino]
                )

            with pytest.raises(IndexFormatError, match="was copied while"):
                Index.open(copy)
            monkeypatch.setattr(time, "sleep", commit)
            with Index.open(copy) as index:
                assert len(index) == 1

    def test_copies_made_during_writes_are_consistent_or_refused(self, path, tmp_path, monkeypatch):
        """Each commit changes all documents; a mixed copy would contain those of two commits."""
        monkeypatch.setattr("semsearch.stores.local.database.CLAIM_SECONDS", 0)
        commits = """
import itertools, sys
from semsearch import Document, Index
for state in itertools.count(1):
    with Index.create(sys.argv[1], ["hashing:32"]) as index:
        index.add(Document(str(n), f"state{state} {'x' * 300} {n}", metadata={"state": state})
                  for n in range(60))
    if state == 3:
        print("committed", flush=True)
"""
        command = [sys.executable, "-c", commits, path]
        read = refused = 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                process.stdout.readline()
                copies = list(self.copies(path, tmp_path / "copies"))
            finally:
                process.send_signal(signal.SIGKILL)
        for copy in copies:
            try:
                with Retriever.open(copy) as retriever:
                    hits = retriever.search("state", 1000)
            except SemsearchError:
                refused += 1
                continue
            assert {hit.document_id for hit in hits} == {str(n) for n in range(60)}
            assert len({hit.metadata["state"] for hit in hits}) == 1
            assert len({hit.text.partition(" ")[0] for hit in hits}) == 1
            read += 1
        assert read + refused == len(copies) > 5
