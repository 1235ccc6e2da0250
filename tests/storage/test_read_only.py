"""Readers without write permission, at rest, beside a writer and after a killed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from semsearch import Document, Index

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")

#: Searches by vectors and by words once for each line of its input.
READER = """
import sys
from semsearch import Index
with Index.open(sys.argv[1]) as index:
    for _ in sys.stdin:
        found = [index.search("number word3", 999, mode=mode) for mode in ("semantic", "bm25")]
        print(len(index), *map(len, found), flush=True)
"""


def obeying_permissions() -> list[str]:
    """A command prefix that subjects root to file permissions, too."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("without setpriv, root ignores directory permissions")
    capabilities = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "x"
    (tmp_path / "x").chmod(0o755)


def add(index, *numbers):
    index.add(Document(str(n), f"word{n % 5} number {n}") for n in range(*numbers))


def test_readers_see_each_commit(path):
    with Index.create(path, ["hashing:32"]) as index:
        add(index, 100)
    path.chmod(0o555)
    command = [*obeying_permissions(), sys.executable, "-c", READER, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as reader:

        def answer():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return reader.stdout.readline()

        assert answer() == "100 100 100\n"
        path.chmod(0o755)
        with Index.open(path) as index:
            add(index, 100, 300)
            path.chmod(0o555)
            assert answer() == "300 300 300\n"  # from the log
        path.chmod(0o755)
        with Index.open(path) as index:
            add(index, 300, 310)
        path.chmod(0o555)
        assert answer() == "310 310 310\n"  # without locks
        reader.stdin.close()
