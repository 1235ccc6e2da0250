"""``semsearch configure``."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import code_of


class TestStemmerAndFilterColumns:
    def test_stemmer(self, run):
        run("index", "corpus.csv", "--encoder", "hashing")
        run("configure", "--stemmer", "english")
        assert json.loads(run("info", "--format", "json").stdout)["language"]["name"] == "english"
        run("configure", "--stemmer", "none")
        assert json.loads(run("info", "--format", "json").stdout)["language"]["name"] == "none"

    def test_filter_columns(self, run):
        run("index", "corpus.csv", "--encoder", "hashing")
        run("configure", "--filter-column", "year", "--filter-column", "genres")
        shown = json.loads(run("info", "--format", "json").stdout)
        assert shown["indexed_fields"] == ["genres", "year"]
        assert code_of(run("configure", "--filter-column", "yeer", code=1)) == "invalid-filter"


class TestIndexType:
    @pytest.fixture
    def many(self, run, tmp_path):
        lines = [f"{number},word{number % 7} thing{number % 11}" for number in range(1000)]
        (tmp_path / "corpus.csv").write_text("\n".join(["id,text", *lines]))
        return run

    def snapshot(self, run):
        (space,) = json.loads(run("info", "--format", "json").stdout)["spaces"]
        return space["snapshot"]

    def test_of_an_existing_index(self, many):
        many("index", "corpus.csv", "--encoder", "hashing")
        assert self.snapshot(many)["kind"] == "flat"
        many("configure", "--index-type", "ivf", "--recall", "0.9", "--index", "indexes/corpus")
        assert self.snapshot(many)["kind"] == "ivf"
        assert self.snapshot(many)["recall"] >= 0.8
        many("configure", "--index-type", "auto")
        assert self.snapshot(many)["kind"] == "flat"


class TestSpaces:
    def test_added_and_dropped(self, indexed):
        indexed("configure", "--add-space", "hashing:16")
        spaces = json.loads(indexed("info", "--format", "json").stdout)["spaces"]
        assert [space["name"] for space in spaces] == ["hashing", "hashing-16"]
        assert spaces[1]["snapshot"]["vectors"] == 3
        assert "Train" in indexed("query", "train", "--space", "hashing-16").stdout
        indexed("configure", "--drop-space", "hashing")
        (left,) = json.loads(indexed("info", "--format", "json").stdout)["spaces"]
        assert left["name"] == "hashing-16"
        last = indexed("configure", "--drop-space", "hashing-16", code=1)
        assert code_of(last) == "unusable-space"

    def test_in_the_index_of_the_environment(self, indexed, monkeypatch):
        """It names the index that `info` shows; of several, the wrong one lost its space."""
        spaces = ["--encoder", "hashing", "--encoder", "hashing:16"]
        indexed("index", "corpus.csv", "--index", "other", *spaces)
        monkeypatch.setenv("SEMSEARCH_INDEX", "other")
        dropped = indexed("configure", "--drop-space", "hashing")
        assert dropped.stdout == "other: space 'hashing' dropped\n"
        assert indexed("configure", "--stemmer", "german").stdout.startswith("other: BM25")
        assert indexed("index", "corpus.csv").stdout.startswith("indexes/corpus: 3 documents")
