"""Readers without write permission, beside live and killed writers; copies of killed indexes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from semsearch import Document, Index

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")

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
from semsearch import Index
from semsearch.errors import SemsearchError
try:
    with Index.open(sys.argv[1]) as retriever:
        for line in sys.stdin:
            found = [len(retriever.search("number word3", 10_000, mode=mode))
                     for mode in ("semantic", "bm25")]
            print(json.dumps([len(retriever), *found]), flush=True)
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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


def create(path, documents):
    with Index.create(path, ["hashing:32"]) as index:
        index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(documents))


class TestReadersWithoutWritePermission:
    """Each sees the last commit: the expected numbers are those that the writer committed."""

    def test_at_rest(self, path):
        create(path, DOCUMENTS)
        with unwritable(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_beside_a_live_writer(self, path):
        with writer(path), unwritable(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_after_a_killed_writer(self, path):
        with writer(path) as process:
            process.kill()
        assert (path / "index.sqlite-wal").stat().st_size
        with unwritable(path) as prefix:
            assert answer(path, prefix) == [DOCUMENTS] * 3

    def test_a_writer_that_comes_and_goes(self, path):
        create(path, 100)
        with unwritable(path) as prefix, reader(path, prefix) as ask:
            assert ask() == [100] * 3
            path.chmod(0o755)
            with writer(path, 100, 300):
                path.chmod(0o555)
                assert ask() == [300] * 3
            assert ask() == [300] * 3


def test_writing_without_permission_fails(path):
    with Index.create(path, ["hashing:32"]) as index:
        index.add([Document("1", "one")])
    with unwritable(path) as prefix:
        command = [*prefix, sys.executable, "-m", "semsearch", "delete", "1", "--index", str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.endswith("[unusable-index]\n")
    with Index.open(path) as index:
        assert len(index) == 1
