"""Where published data sets are stored, and their registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semsearch.errors import DatasetError, DatasetNotFoundError
from semsearch.evaluation.datasets import read_stsbenchmark, registry
from semsearch.evaluation.datasets.registry import data_file, known_set, known_sets


def test_a_folder_named_by_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    (tmp_path / "a.txt").touch()
    assert data_file("a.txt") == tmp_path / "a.txt"
    with pytest.raises(DatasetNotFoundError, match=r"^b\.txt"):
        data_file("b.txt")
    (tmp_path / "sts" / "SICK").mkdir(parents=True)
    (tmp_path / "sts" / "SICK" / "SICK_trial.txt").touch()
    missing = {file.path for file in known_set("sick").missing_files()}
    assert missing >= {"sts/SICK/SICK_train.txt", "sts/SICK/SICK_test_annotated.txt"}


def test_the_default_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("SEMSEARCH_DATA", raising=False)
    monkeypatch.setattr(registry, "user_data_path", tmp_path.joinpath)
    with pytest.raises(DatasetNotFoundError, match="datasets fetch quora$"):
        data_file("pairs/quora_dev.tsv")
    file = tmp_path / "semsearch" / "data" / "pairs" / "quora_dev.tsv"
    file.parent.mkdir(parents=True)
    file.touch()
    assert data_file("pairs/quora_dev.tsv") == file


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


def test_the_lists_of_sets_and_files():
    """The first and the last line of known_files.tsv; the properties of a set."""
    known = known_sets.__wrapped__()
    assert known == known_sets()
    files = Path(registry.__file__).with_name("known_files.tsv").read_text("utf-8").splitlines()
    for line in (files[1], files[-1]):
        name, path, size, sha256, url = line.split("\t")
        [file] = [file for file in known[name].files if file.path == path]
        assert (file.size, file.sha256, file.url) == (
            int(size) if size else None,
            sha256 or None,
            url or None,
        )
    assert sum(len(one.files) for one in known.values()) == len(files) - 1
    with pytest.raises(DatasetNotFoundError):
        known_set("nothing")
