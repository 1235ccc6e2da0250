"""``semsearch configure``."""

from __future__ import annotations

import json

from tests.cli.conftest import code_of


def described(run):
    return json.loads(run("info", "--format", "json").stdout)


def test_words_and_filters(indexed):
    for stemmer in ("english", "none"):
        indexed("configure", "--stemmer", stemmer)
        assert described(indexed)["language"]["name"] == stemmer
    indexed("configure", "--filter-column", "year", "--filter-column", "genres")
    assert described(indexed)["indexed_fields"] == ["genres", "year"]


def test_index_type(run, tmp_path):
    lines = [f"{number},word{number % 7} thing{number % 11}" for number in range(1000)]
    (tmp_path / "corpus.csv").write_text("\n".join(["id,text", *lines]))
    run("index", "corpus.csv", "--encoder", "hashing")
    run("configure", "--index-type", "ivf", "--recall", "0.9", "--index", "indexes/corpus")
    snapshot = described(run)["spaces"][0]["snapshot"]
    assert snapshot["kind"] == "ivf"
    assert snapshot["recall"] >= 0.8
    run("configure", "--index-type", "auto")
    assert described(run)["spaces"][0]["snapshot"]["kind"] == "flat"


def test_spaces_are_added_and_dropped(indexed):
    indexed("configure", "--add-space", "hashing:16")
    spaces = described(indexed)["spaces"]
    assert [space["name"] for space in spaces] == ["hashing", "hashing-16"]
    assert spaces[1]["snapshot"]["vectors"] == 3
    assert "Train" in indexed("query", "train", "--space", "hashing-16").stdout
    indexed("configure", "--drop-space", "hashing")
    (left,) = described(indexed)["spaces"]
    assert left["name"] == "hashing-16"
    last = indexed("configure", "--drop-space", "hashing-16", code=1)
    assert code_of(last) == "unusable-space"


def test_in_the_index_of_the_environment(indexed, monkeypatch):
    """It names the index that `info` shows; of several, the wrong one lost its space."""
    spaces = ["--encoder", "hashing", "--encoder", "hashing:16"]
    indexed("index", "corpus.csv", "--index", "other", *spaces)
    monkeypatch.setenv("SEMSEARCH_INDEX", "other")
    dropped = indexed("configure", "--drop-space", "hashing")
    assert dropped.stdout == "other: space 'hashing' dropped\n"
    assert indexed("configure", "--stemmer", "german").stdout.startswith("other: BM25")
    assert indexed("index", "corpus.csv").stdout.startswith("indexes/corpus: 3 documents")
