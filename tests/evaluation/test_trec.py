"""Rankings in files: TREC's format, and systems that are read from it."""

from __future__ import annotations

import math

import numpy
import pytest
from pets import PETS, ranked

from semsearch.errors import ArgumentError, CorpusError, DatasetError
from semsearch.evaluation import evaluate_retrieval, load_rankers, read_run, write_run
from semsearch.evaluation.rankers import RecordedRanker


def test_runs_are_read_and_written(tmp_path):
    run = {"q1": {"d2": 0.1 + 0.2, "d1": 1e-12}, "q2": {"d3": 5.0}}
    write_run(tmp_path / "a.run", run, "my system")
    lines = (tmp_path / "a.run").read_text().splitlines()
    assert lines[:2] == ["q1 Q0 d2 1 0.30000000000000004 my_system", "q1 Q0 d1 2 1e-12 my_system"]
    assert read_run(tmp_path / "a.run") == run
    # As in trec_eval: by score, whatever the ranks are, and ties by the greater id.
    (tmp_path / "a.run").write_text("q Q0 a 1 1 x\nq Q0 b 2 1 x\nq Q0 c 3 2 x\n\n")
    assert list(read_run(tmp_path / "a.run")["q"]) == ["c", "b", "a"]


def test_written_ties_keep_their_order(tmp_path):
    """trec_eval orders ties by id, and reads scores in single precision."""
    scores = [4.0, 3.0, 3.0, 3.0, 3 - 1e-12, 0.5, 0.0, 0.0, -1.0]
    run = {"q": {f"d{number}": score for number, score in enumerate(scores)}}
    write_run(tmp_path / "a.run", run, "x")
    found = read_run(tmp_path / "a.run")["q"]
    assert list(found) == list(run["q"])
    assert (numpy.diff(numpy.float32(list(found.values()))) < 0).all()
    assert list(found.values()) == pytest.approx(scores)
    assert [found[name] for name in ("d0", "d1", "d5", "d6", "d8")] == [4.0, 3.0, 0.5, 0.0, -1.0]


def test_a_recorded_run_is_a_system(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    first = evaluate_retrieval(PETS, load_rankers(["bm25"]))
    write_run(tmp_path / "a.run", first.runs["bm25"], "bm25")
    again = evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run", "run:~/a.run"]))
    wanted = [result.estimate for result in first.results]
    assert [result.estimate for result in again.results] == 2 * wanted
    assert math.isnan(again.results[0].seconds)


def test_queries_missing_from_a_run_are_counted(tmp_path, caplog):
    """trec_eval leaves them out of its means, unless called with -c."""
    file = tmp_path / "a.run"
    file.write_text("".join(f"{query} Q0 d1 1 1.0 x\n" for query in PETS.queries))
    ranked(RecordedRanker("a", file))
    assert not caplog.messages
    file.write_text("q1 Q0 d1 1 1.0 x\n")
    run = ranked(RecordedRanker("a", file))
    assert run == {"q1": {"d1": 1.0}, "q2": {}, "q3": {}}
    (message,) = caplog.messages
    assert " 2 of the 3 queries " in message


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("q1 Q0 d 1 0.5\n", "a.run:1: "),
        ("q1 Q0 d 1 1 x\nq1 Q0 e 2 high x\n", "a.run:2: "),
        ("q1 Q0 d 1 1 x\nq1 Q0 d 2 1 x\n", "a.run:2: "),
        ("other Q0 d 1 1 x\n", "a.run has no query of pets"),
    ],
)
def test_wrong_runs_are_reported(tmp_path, content, place):
    (tmp_path / "a.run").write_text(content)
    with pytest.raises(DatasetError, match=place):
        evaluate_retrieval(PETS, load_rankers([f"run:{tmp_path}/a.run"]))


def test_a_run_that_its_format_does_not_allow_is_not_begun(tmp_path):
    for run in ({"q 1": {"d": 1.0}}, {"q": {"a": 1.0, "b c": 0.5}}):
        with pytest.raises(ArgumentError):
            write_run(tmp_path / "x.run", run, "x")
        assert not (tmp_path / "x.run").exists()
    with pytest.raises(CorpusError):
        read_run(tmp_path / "x.run")
