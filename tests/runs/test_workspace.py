"""A model is published whole, replaces none by default, and has one writer at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from semsearch.errors import ArgumentError, TrainingError
from semsearch.runs import Workspace

PLAN = {"seed": 1, "stages": [{"data": "pairs.csv"}, {"data": "more.csv"}]}


@pytest.fixture
def model(tmp_path) -> Path:
    """A folder that looks like a model."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model" / "model.safetensors").touch()
    return tmp_path / "model"


def test_model_is_replaced_only_on_request(model):
    with pytest.raises(ArgumentError, match="model exists; name another --output, or --overwrite"):
        Workspace(model)
    workspace = Workspace(model, overwrite=True)
    with workspace.opened(PLAN):
        draft = workspace.folder / "draft"
        draft.mkdir()
        (draft / "new").touch()
        assert (model / "config.json").is_file()
        workspace.publish(draft)
    assert [file.name for file in model.iterdir()] == ["new"]
    assert [file.name for file in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_other_files_are_never_replaced(tmp_path, overwrite):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-my-aunt.txt").touch()
    (tmp_path / "file").touch()
    for name, config in (("server", '{"port": 80}'), ("list", "[]"), ("broken", "{")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config)
        (tmp_path / name / "model.safetensors").touch()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "modules.json").write_text('["billing"]')
    for name in ("letters", "file", "server", "list", "broken", "modules"):
        with pytest.raises(ArgumentError):
            Workspace(tmp_path / name, overwrite=overwrite)
    (tmp_path / "empty").mkdir()
    workspace = Workspace(tmp_path / "empty", overwrite=overwrite)
    with workspace.opened(PLAN):
        draft = workspace.folder / "draft"
        draft.mkdir()
        workspace.publish(draft)
    assert not (tmp_path / "empty.training").exists()


def test_the_plan_is_deleted_last(tmp_path, monkeypatch):
    """A run of which a killed process deleted a part can be discarded."""
    for begun in (False, True):
        workspace = Workspace(tmp_path / "model", overwrite=begun)
        with workspace.opened(PLAN):
            if begun:
                assert [file.name for file in workspace.folder.iterdir()] == ["plan.json"]
            for number in range(9):
                (workspace.folder / f"stage-{number}").mkdir()
                (workspace.folder / f"stage-{number}" / "weights").touch()
    deleted = []
    unlink = os.unlink

    def noted(path, **options):
        deleted.append(Path(path).name)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", noted)
    workspace.discard()
    assert deleted == ["weights"] * 9 + ["plan.json"]
    assert not workspace.folder.exists()


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
        Exception("File too large (os error 27)"),  # from tokenizers
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
        RuntimeError("basic_ios::clear: iostream error"),
    ],
)
def test_failed_write_keeps_the_old_model(model, error):
    workspace = Workspace(model, overwrite=True)
    with pytest.raises(TrainingError, match=r"model\.training"), workspace.opened(PLAN):
        raise error
    assert (model / "config.json").is_file()


def test_run_is_resumed_only_with_its_own_plan(tmp_path):
    with pytest.raises(ArgumentError):
        Workspace(tmp_path / "model", resume=True)
    with Workspace(tmp_path / "model").opened(PLAN):
        pass
    with pytest.raises(ArgumentError):
        Workspace(tmp_path / "model")
    workspace = Workspace(tmp_path / "model", resume=True)
    other = {"seed": 1, "stages": [{"data": "pairs.csv"}, {"data": "others.csv"}]}
    with (
        pytest.raises(ArgumentError, match='"more.csv", not "others.csv"'),
        workspace.opened(other),
    ):
        pytest.fail("the run with another plan started")
    (workspace.folder / "checkpoint").touch()
    with workspace.opened(PLAN):
        assert (workspace.folder / "checkpoint").exists()
    with Workspace(tmp_path / "model", overwrite=True).opened(other):
        assert not (workspace.folder / "checkpoint").exists()


def test_one_process_at_a_time(tmp_path):
    workspace = Workspace(tmp_path / "model")
    with (
        workspace.opened(PLAN),
        pytest.raises(TrainingError),
        Workspace(tmp_path / "model", overwrite=True).opened(PLAN),
    ):
        pytest.fail("both processes started")
