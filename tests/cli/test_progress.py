"""Progress lines where standard error is not a terminal."""

from __future__ import annotations

import pytest

from semsearch.cli import progress as module
from semsearch.cli.progress import EvaluationProgress, IndexingProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets; every update prints a line."""
    clock = {"now": 0.0}
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock["now"])
    monkeypatch.setattr(module, "LINE_EVERY_SECONDS", 0.0)
    return clock


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_rate_and_remaining_time(clock, capsys):
    with IndexingProgress("texts") as progress:
        progress.update(0, None)
        clock["now"] = 2.0
        progress.update(100, 0.25)
        clock["now"] = 8.0
        progress.update(400, None)
    assert lines(capsys) == ["0 texts", "100 texts, 50/s, 0:06 left", "400 texts, 50/s"]


def test_rate_excludes_time_and_work_before_the_first_update(clock, capsys):
    with IndexingProgress("steps") as progress:
        clock["now"] = 1000.0
        progress.update(40, 0.4)
        clock["now"] = 1050.0
        progress.update(50, 0.5)
    assert lines(capsys) == ["40 steps", "50 steps, 5.0 s each, 4:10 left"]


def test_the_set_and_the_system_are_counted(clock, capsys):
    del clock
    progress = EvaluationProgress(["pets", "pets"], ["minilm", "bm25"])
    for _ in range(2):
        with progress:
            progress.show("bm25", "queries", 0, 5)
    assert lines(capsys) == [
        "pets (1 of 2), bm25 (2 of 2): queries 0 of 5",
        "pets (2 of 2), bm25 (2 of 2): queries 0 of 5",
    ]
    with EvaluationProgress(["pets"], ["minilm"]) as progress:
        progress.show("minilm", "documents", 0, 5)
    assert lines(capsys) == ["minilm: documents 0 of 5"]
