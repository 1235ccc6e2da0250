"""A full disk and failing writes: a clear error, the last commit intact, the index writable."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexStoreError


def grow(path, *arguments):
    """Run grow.py and return its report."""
    command = [sys.executable, Path(__file__).with_name("grow.py"), path, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)


def check(path, before, report):
    """Check that all commits are intact and that the index can be written again."""
    with Index.open(path) as index:
        count = len(index)
        assert before + report["committed"] <= count <= before + report["committed"] + 300
        with index.writer() as writer:
            assert writer.verify() == []
            writer.upsert([Document(f"after-{count}", "birch after all")])
        hits = index.search("birch after all", k=count + 1)
        assert len(hits) == count + 1
    return count + 1


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "index", ["hashing:64"]) as index:
        index.add([Document("first", "amber")])
    return tmp_path / "index"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot limit file sizes")
def test_a_limit_of_file_sizes(path):
    count = 1
    for limit in (400_000, 900_000, 3_000_000):
        report = grow(path, limit)
        assert report["error"] == "IndexStoreError"
        assert str(path) in report["message"]
        assert "\n" not in report["message"]
        count = check(path, count, report)
    assert count > 300


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a small tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk):
    path = small_disk / "index"
    with Index.create(path, ["hashing:64"]) as index:
        index.add([Document("first", "amber")])
    report = grow(path)
    assert report["error"] == "IndexStoreError"
    assert "full" in report["message"] or "No space left" in report["message"]
    with Index.open(path) as index:
        assert len(index) >= 1 + report["committed"]
        assert len(index.search("amber", k=1)) == 1
        with pytest.raises(IndexStoreError):
            index.add([Document(f"more-{item}", f"more {item} " * 50) for item in range(5000)])
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    with Index.open(path) as index:
        count = len(index)
    check(path, count, {"committed": 0})


FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize("step", ["faiss.write_index", "os.fsync"])
def test_a_snapshot_that_cannot_be_written(path, monkeypatch, step):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, FULL)

    documents = [Document(f"new-{item}", f"birch {item}") for item in range(20)]
    with Index.open(path) as index:
        monkeypatch.setattr(step, fail)
        with pytest.raises(IndexStoreError, match=FULL):
            index.add(documents)
        monkeypatch.undo()
        assert len(index) == 21
        assert len(index.search("birch 7", k=30)) == 21
        assert not list(path.glob("*.tmp"))
        assert index.add(documents).unchanged == 20
        with index.writer() as writer:
            assert writer.verify() == []
