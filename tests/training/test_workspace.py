"""A model is published whole, replaces nothing, and has one writer at a time."""

from __future__ import annotations

import pytest

from semsearch.errors import ArgumentError, TrainingError
from semsearch.training.workspace import locked_run, publish, training_folder

PLAN = {"seed": 1, "stages": [{"data": "pairs.csv"}]}


def test_only_an_empty_folder_is_replaced(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-my-aunt.txt").touch()
    (tmp_path / "new.training").mkdir()
    (tmp_path / "new.training" / "other.txt").touch()
    for name in ("file", "letters", "new"):
        with pytest.raises(ArgumentError):
            training_folder(tmp_path / name)
    (tmp_path / "empty").mkdir()
    folder = training_folder(tmp_path / "empty")
    with locked_run(folder, PLAN):
        (folder / "draft").mkdir()
        (folder / "draft" / "weights").touch()
        publish(folder, folder / "draft", tmp_path / "empty")
    assert [file.name for file in (tmp_path / "empty").iterdir()] == ["weights"]
    assert not folder.exists()


def test_run_is_resumed_only_with_its_own_plan(tmp_path):
    folder = training_folder(tmp_path / "model")
    with locked_run(folder, PLAN):
        (folder / "checkpoint").touch()
    assert training_folder(tmp_path / "model") == folder
    other = PLAN | {"stages": [{"data": "others.csv"}]}
    with pytest.raises(ArgumentError, match="stages"), locked_run(folder, other):
        pytest.fail("the run with another plan started")
    with locked_run(folder, PLAN):
        assert (folder / "checkpoint").exists()


def test_one_process_at_a_time(tmp_path):
    folder = training_folder(tmp_path / "model")
    with locked_run(folder, PLAN), pytest.raises(TrainingError), locked_run(folder, PLAN):
        pytest.fail("both processes started")
