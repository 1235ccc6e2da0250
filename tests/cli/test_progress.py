"""Progress: lines where standard error is not a terminal, a bar where it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from semsearch.cli import progress as module
from semsearch.cli.progress import IndexingProgress
from tests.cli.conftest import shown_on


def test_a_line_at_most_every_thirty_seconds(monkeypatch, capsys):
    clock = {"now": 0.0}
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock["now"])
    with IndexingProgress("texts") as progress:
        steps = [(29, 1, None), (30, 1000, 0.25), (59, 3, 0.5), (60, 4, None)]
        for clock["now"], done, fraction in steps:
            progress.update(done, fraction)
        clock["now"] = 90
        progress.step("pets, bm25: queries", 1, 4)
        clock["now"] = 120
        progress.step("pets, bm25: queries", 1, 0)
    assert capsys.readouterr().err.splitlines() == [
        "1,000 texts, 25% done",
        "4 texts",
        "pets, bm25: queries 1 of 4, 25% done",
        "pets, bm25: queries",
    ]


def test_quiet(monkeypatch, capsys):
    monkeypatch.setattr(module, "LINE_EVERY_SECONDS", 0.0)
    with IndexingProgress("texts", quiet=True) as progress:
        progress.update(1, 0.5)
        progress.note("a note")
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(tmp_path):
    """Its notes stay; standard output is not redirected with it."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    code = """from semsearch.cli.progress import IndexingProgress
from tests.cli.conftest import shown_on
with IndexingProgress("texts") as progress:
    progress.update(1, 0.5)
    progress.note("a [note]")
    progress.step("step", 1, 2)
    print("output")"""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=theirs, stdout=subprocess.PIPE, env=environment
    )
    os.close(theirs)
    shown = shown_on(ours)
    assert (done.returncode, done.stdout) == (0, b"output\n")
    for text in ("1 texts", "a [note]", "step 1 of 2"):
        assert text in shown
