"""``semsearch index --watch``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from semsearch import Index


def documents():
    """The texts in the index by id; empty until it exists."""
    try:
        with Index.open("indexes/notes") as index:
            return {document.id: document.text for document in index}
    except Exception:  # it is being created
        return {}


@pytest.fixture
def watching(interruptible):
    """A process that watches the folder notes and writes its output to log."""
    Path("notes").mkdir()
    Path("notes/a.txt").write_text("One.")
    command = [sys.executable, "-m", "semsearch", "index", "notes", "--encoder", "hashing"]
    command += ["--watch", "--sync", "--skip-bad-rows", "--allow-removals"]
    with Path("log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
        yield process
        process.kill()
        process.wait()


def wait_for(condition):
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(Path("log").read_text())


@pytest.mark.nightly
def test_index_follows_the_folder(watching):
    wait_for(lambda: "watching for changes" in Path("log").read_text())
    assert documents() == {"a.txt": "One."}
    Path("notes/deep").mkdir()
    Path("notes/deep/b.txt").write_text("Two.")
    wait_for(lambda: documents() == {"a.txt": "One.", "deep/b.txt": "Two."})
    Path("notes/a.txt").write_text("Another one.")
    wait_for(lambda: documents()["a.txt"] == "Another one.")
    Path("notes/c.pdf").write_text("%PDF-1.4 broken")
    wait_for(lambda: "c.pdf: cannot be read as PDF" in Path("log").read_text())
    Path("notes/a.txt").unlink()
    Path("notes/deep/b.txt").rename("notes/b.txt")
    wait_for(lambda: documents() == {"b.txt": "Two."})
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 0
    assert Path("log").read_text().endswith("stopped watching\n")
