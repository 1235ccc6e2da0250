"""``semsearch export``, and hits as Parquet."""

from __future__ import annotations

import io
import json

import pandas
import pytest

from semsearch import Document, Index
from semsearch.cli.render import print_hits
from semsearch.errors import ArgumentError
from tests.cli.conftest import code_of, invoke


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch` in a folder with one index in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    with Index.create("indexes/pets", "hashing") as index:
        index.add(
            [
                Document("a", "a red bird", "Birds", {"year": 1999, "tags": ["x"], "rank": 7}),
                Document("b", "a blue fish", None, {"year": 2004, "odd": 1}),
                Document("c", "a red fish", None, {"odd": "one"}),
            ]
        )

    return invoke


def test_options(run):
    result = run("export", "new.parquet", "--where", "year > 2000", "--vectors")
    assert result.stdout == "new.parquet: 1 passage\n"
    assert code_of(run("export", "new.parquet", code=1)) == "invalid-argument"
    every = run("export", "all.parquet")
    assert every.stdout == "all.parquet: 3 documents\n"
    assert "odd" in every.stderr  # its values fit no single type of Parquet
    assert code_of(run("export", "-", code=1)) == "invalid-argument"


def test_exported_file_can_be_indexed(run):
    run("export", "pets.jsonl")
    run("index", "pets.jsonl", "--encoder", "hashing", "--index", "again")
    query = ("query", "red", "--format", "jsonl", "--where", "year < 2000")
    assert run(*query, "--index", "again").stdout == run(*query, "--index", "indexes/pets").stdout


class TestHitsAsParquet:
    def read(self, result):
        return pandas.read_parquet(io.BytesIO(result.stdout_bytes))

    def test_one_row_per_hit(self, run):
        queries = "red fish\nbird\n"
        arguments = ("query", "--queries", "-", "-k", "2", "--mode", "hybrid", "--format")
        frame = self.read(run(*arguments, "parquet", typed=queries))
        answers = [
            json.loads(line) for line in run(*arguments, "jsonl", typed=queries).stdout.splitlines()
        ]
        hits = [{"query": one["query"], **hit} for one in answers for hit in one["hits"]]
        for name in ("query", "rank", "score", "id", "text"):
            assert frame[name].tolist() == [hit[name] for hit in hits]
        assert frame["cosine"].tolist() == [hit["scores"]["cosine"] for hit in hits]
        assert frame["metadata.rank"].dropna().tolist() == [7] * frame["id"].tolist().count("a")
        assert frame["rank"].dtype == "int64"

    def test_explain_and_terminals_are_rejected(self, run, monkeypatch):
        result = run("query", "red", "--explain", "--format", "parquet", code=1)
        assert code_of(result) == "invalid-argument"
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        with pytest.raises(ArgumentError):
            print_hits("parquet", [], headings=False, show=[], fields=[])
