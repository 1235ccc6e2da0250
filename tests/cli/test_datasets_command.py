"""The ``semsearch datasets`` command: list and fetch."""

from __future__ import annotations

from functools import partial

from semsearch.cli import datasets_command
from semsearch.evaluation.datasets.registry import known_sets
from tests.cli.conftest import code_of, invoke

run = partial(invoke, "datasets")


def test_what_is_here(tmp_path):
    folder = tmp_path / "data" / "sts" / "SICK"
    folder.mkdir(parents=True)
    (folder / "SICK_trial.txt").touch()
    lines = run("list").stdout.splitlines()
    found = [line.split()[-1] for line in lines if line.startswith(("sick", "snli"))]
    assert found == ["partly", "no"]
    for name in known_sets():
        assert any(line.startswith(name) for line in lines)


def test_the_folder_is_printed(tmp_path, monkeypatch):
    def fetched(name, on_progress):
        on_progress(500, 1000)
        return tmp_path / name

    monkeypatch.setattr(datasets_command, "fetch_set", fetched)
    result = run("fetch", "sick", "snli")
    assert result.stdout == f"{tmp_path}/sick\n{tmp_path}/snli\n"
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["sick", "snli"]


def test_names_are_checked_before_downloading(tmp_path):
    result = run("fetch", "stsbenchmark", "nope", code=1)
    assert code_of(result) == "dataset-not-found"
    assert not (tmp_path / "data").exists()
