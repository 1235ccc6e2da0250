"""Where published data sets are stored, and their registry."""

from __future__ import annotations

import re

import pytest

from semsearch.errors import DatasetError, DatasetNotFoundError
from semsearch.evaluation.datasets import data_file, folder, read_stsbenchmark
from semsearch.evaluation.datasets.folder import data_folder, missing_files, place_of
from semsearch.evaluation.datasets.registry import known_set, known_sets


class TestLocation:
    def test_a_folder_named_by_the_user(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        (tmp_path / "a.txt").touch()
        assert data_file("a.txt") == tmp_path / "a.txt"
        with pytest.raises(DatasetNotFoundError, match=r"^b\.txt"):
            data_file("b.txt")

    def test_the_default_folder(self, tmp_path, monkeypatch):
        monkeypatch.delenv("SEMSEARCH_DATA", raising=False)
        monkeypatch.setattr(folder, "user_data_path", tmp_path.joinpath)
        assert data_folder() == tmp_path / "semsearch" / "data"
        with pytest.raises(DatasetNotFoundError, match="datasets fetch quora$"):
            data_file("pairs/quora_dev.tsv")
        file = data_folder() / "pairs" / "quora_dev.tsv"
        file.parent.mkdir(parents=True)
        file.touch()
        assert data_file("pairs/quora_dev.tsv") == file

    def test_the_folder_of_a_set(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        sick = known_set("sick")
        with pytest.raises(DatasetNotFoundError):
            place_of(sick)
        (tmp_path / "sts" / "SICK").mkdir(parents=True)
        (tmp_path / "sts" / "SICK" / "SICK_trial.txt").touch()
        assert place_of(sick) == tmp_path / "sts" / "SICK"
        assert "sts/SICK/SICK_train.txt" in {file.path for file in missing_files(sick)}


@pytest.mark.parametrize("known", known_sets().values(), ids=known_sets())
def test_the_registry(known):
    assert known.licence
    assert known.home.startswith("http")
    assert min(known.rows.values()) > 0
    for file in known.files:
        assert file.path == known.place or file.path.startswith(f"{known.place}/")
        if file.url is None:
            assert known.source
        else:
            assert file.url.startswith("https://")
            assert file.size
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_an_invalid_line_of_stsbenchmark(put, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    put("sts/stsbenchmark/sts-test.csv", "main-news\tx\t2013\t7\t4.5\tA cat.\n")
    with pytest.raises(DatasetError, match=r"sts-test\.csv:1"):
        read_stsbenchmark()
