"""Processes and threads share an index: it is created once, written in turn, always readable."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, Timer

import pytest
from sqlalchemy import event

from semsearch import Document, Index
from semsearch.storage.sqlite.database import Database

CREATE = """
import json, sys
from semsearch import Document, Index
path, number = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with Index.create(path, ["hashing:32", "hashing:64"]) as index:
    with index.writer(wait=60) as writer:
        writer.upsert([Document(number, f"text {number}")])
    print(json.dumps([space.name for space in index.info().spaces]))
"""


def test_processes_that_create_one_index_at_once(tmp_path):
    path = tmp_path / "x"
    command = [sys.executable, "-c", CREATE, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(number)], **pipes) for number in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert json.loads(process.communicate()[0]) == ["hashing-32", "hashing-64"]
        assert process.returncode == 0
    with Index.open(path) as index:
        assert len(index) == 3
        with index.writer() as writer:
            assert writer.verify() == []
        for space in ("hashing-32", "hashing-64"):
            assert len(index.search("text", 10, space=space)) == 3


def test_threads_that_write_one_index_lose_nothing(tmp_path):
    """They use two objects, and two names of the directory."""
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with (
        Index.create(tmp_path / "x", ["hashing:32"]) as index,
        Index.open(tmp_path / "link") as same,
        ThreadPoolExecutor(8) as threads,
    ):

        def add(number):
            (index, same)[number % 2].add([Document(str(number), f"text {number}")])

        list(threads.map(add, range(60)))
        assert len(index) == len(same) == 60
        with index.writer() as writer:
            assert writer.verify() == []


def test_any_number_of_threads_can_read_at_once(tmp_path):
    """QueuePool's default is 15 connections; the next one times out after 30 seconds."""
    threads = 60
    barrier = Barrier(threads)
    with Index.create(tmp_path / "x", ["hashing:32"]) as index:
        index.add([Document("a", "one")])

        def read(_):
            with index.read() as state:
                connection = state.connection
                barrier.wait()
                return connection.exec_driver_sql("SELECT count(*) FROM documents").scalar()

        with ThreadPoolExecutor(threads) as pool:
            assert list(pool.map(read, range(threads))) == [1] * threads


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, TimeoutError])
def test_an_interrupted_transaction_releases_the_write_lock(tmp_path, interruption):
    def interrupt(*_):
        raise interruption

    Index.create(tmp_path / "x", ["hashing:32"]).close()
    with closing(Database(tmp_path / "x")) as database:
        # The exception, with its traceback, is kept.
        with (
            pytest.raises(interruption) as _kept,
            database.writing() as connection,
            connection.begin(),
        ):
            event.listen(connection, "after_cursor_execute", interrupt)
            connection.exec_driver_sql("SELECT name FROM settings")
        with closing(sqlite3.connect(database.file, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")


COUNT = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
SELECT sum(i) FROM n
"""


def test_ctrl_c_in_a_long_statement_is_no_fault_of_the_database(tmp_path):
    Index.create(tmp_path / "x", ["hashing:32"]).close()
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = Timer(0.1, interrupt_main)
    try:
        with (
            closing(Database(tmp_path / "x")) as database,
            database.read() as connection,
            pytest.raises(KeyboardInterrupt),
        ):
            timer.start()
            for _ in range(1000):
                connection.exec_driver_sql(COUNT).scalar()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, earlier)


FORK = """
import os, sys
from semsearch import Index
index = Index.open(sys.argv[1])
len(index)
child = os.fork()
if not child:
    sys.stdin.readline()
    index.delete(["a"])
    index.close()
    os._exit(0)
index.close()
print("closed", flush=True)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_process_sees_later_commits_and_keeps_them(tmp_path):
    path = tmp_path / "x"
    with Index.create(path, ["hashing:32"]) as index:
        index.add([*(Document(str(n), f"text {n}") for n in range(300)), Document("a", "one")])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FORK, path], **pipes) as process:
        assert process.stdout.readline() == "closed\n"
        with Index.open(path) as index:
            index.add([Document(f"other {n}", f"other text {n}") for n in range(5)])
        process.communicate("\n")
    assert process.returncode == 0
    with Index.open(path) as index, index.writer() as writer:
        assert (len(index), "a" in index, "other 0" in index) == (305, False, True)
        assert writer.verify() == []
