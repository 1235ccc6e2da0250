"""Where published data sets are stored, their registry, and the two oldest readers."""

from __future__ import annotations

import hashlib
import re

import pytest

from semsearch.datasets import data_file, read_stsbenchmark
from semsearch.datasets.folder import missing_files, place_of
from semsearch.datasets.registry import known_set, known_sets
from semsearch.errors import DatasetError, DatasetNotFoundError


class TestLocation:
    def test_a_folder_named_by_the_user(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        (tmp_path / "a.txt").touch()
        assert data_file("a.txt") == tmp_path / "a.txt"
        with pytest.raises(DatasetNotFoundError, match=r"^b\.txt"):
            data_file("b.txt")

    def test_the_folder_of_a_set(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        sick = known_set("sick")
        with pytest.raises(DatasetNotFoundError):
            place_of(sick)
        (tmp_path / "sts" / "SICK").mkdir(parents=True)
        (tmp_path / "sts" / "SICK" / "SICK_trial.txt").touch()
        assert place_of(sick) == tmp_path / "sts" / "SICK"
        assert "sts/SICK/SICK_train.txt" in {file.path for file in missing_files(sick)}


class TestRegistry:
    @pytest.mark.parametrize("known", known_sets().values(), ids=known_sets())
    def test_facts(self, known):
        assert known.about
        assert known.licence
        assert known.home.startswith("http")
        assert known.rows
        assert all(count > 0 for count in known.rows.values())
        for file in known.files:
            assert file.path == known.place or file.path.startswith(f"{known.place}/")
            if file.url is None:
                assert known.source
            else:
                assert file.url.startswith("https://")
                assert file.size
                assert re.fullmatch("[0-9a-f]{64}", file.sha256)

    def test_files_equal_the_published_ones(self, data):
        found = 0
        for known in known_sets().values():
            for file in known.files:
                path = data / file.path
                if file.sha256 is not None and path.exists():
                    assert path.stat().st_size == file.size, file.path
                    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256, file.path
                    found += 1
        assert found


def test_an_invalid_line_of_stsbenchmark(put, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    put("sts/stsbenchmark/sts-test.csv", "main-news\tx\t2013\t7\t4.5\tA cat.\n")
    with pytest.raises(DatasetError, match=r"sts-test\.csv:1"):
        read_stsbenchmark()
