"""A model appears whole, and over none that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.errors import ArgumentError, TrainingError
from semsearch.unsupervised.output import Output, model_card


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "model").mkdir()
    for overwrite in (False, True):
        with pytest.raises(TrainingError, match="exists, and is no model"):
            Output(tmp_path / "model", overwrite=overwrite)
    (tmp_path / "model" / "config.json").touch()
    with pytest.raises(TrainingError, match="exists; name another folder"):
        Output(tmp_path / "model")
    output = Output(tmp_path / "model", overwrite=True)
    output.finish(lambda folder: (folder / "new").touch())
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["new"]
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_written_leaves_the_old_one(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").touch()
    output = Output(tmp_path / "model", overwrite=True)

    def fail(folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(TrainingError, match="cannot be written: No space left"):
        output.finish(fail)
    assert (tmp_path / "model" / "config.json").is_file()


def test_unfinished_runs(tmp_path):
    with pytest.raises(TrainingError, match="no unfinished run"):
        Output(tmp_path / "model", resume=True)
    (tmp_path / "model.unfinished").mkdir()
    with pytest.raises(TrainingError, match="go on with --resume, or remove it"):
        Output(tmp_path / "model")
    output = Output(tmp_path / "model", resume=True)
    output.finish(lambda folder: None)
    assert not output.unfinished.exists()


@pytest.mark.parametrize("path", ["/", ".", ".."])
def test_places_that_cannot_be(path):
    with pytest.raises(ArgumentError, match="cannot be a new model's folder"):
        Output(Path(path), overwrite=True)


def test_a_card_is_a_table():
    card = model_card("my | model", "It was made.", {"seed": 0, "note": "two\nlines | bar"})
    assert "# my \\| model\n\nIt was made.\n" in card
    assert "| note | two lines \\| bar |" in card
