"""Progress lines where standard error is not a terminal."""

from __future__ import annotations

from semsearch.cli import progress as module
from semsearch.cli.progress import EvaluationProgress, IndexingProgress


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_line_at_most_every_thirty_seconds(monkeypatch, capsys):
    clock = {"now": 0.0}
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock["now"])
    with IndexingProgress("texts") as progress:
        for seconds, done, fraction in [
            (29, 1, None),
            (30, 1000, 0.25),
            (59, 3, 0.5),
            (60, 4, None),
        ]:
            clock["now"] = seconds
            progress.update(done, fraction)
    assert lines(capsys) == ["1,000 texts, 25% done", "4 texts"]


def test_the_set_and_the_system_are_counted(monkeypatch, capsys):
    monkeypatch.setattr(module, "LINE_EVERY_SECONDS", 0.0)
    progress = EvaluationProgress(["pets", "pets"], ["minilm", "bm25"])
    for _ in range(2):
        with progress:
            progress.show("bm25", "queries", 0, 5)
    assert lines(capsys) == [
        "pets (1 of 2), bm25 (2 of 2): queries 0 of 5, 0% done",
        "pets (2 of 2), bm25 (2 of 2): queries 0 of 5, 0% done",
    ]
    with EvaluationProgress(["pets"], ["minilm"]) as progress:
        progress.show("minilm", "documents", 0, 5)
    assert lines(capsys) == ["minilm: documents 0 of 5, 0% done"]
