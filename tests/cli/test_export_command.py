"""``semsearch export``."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from tests.cli.conftest import code_of, invoke


@pytest.fixture
def run():
    """Call `semsearch` in a folder with one index in it."""
    with Index.create("indexes/pets", "hashing") as index:
        first = Document("a", "a red bird", "Birds", {"year": 1999, "tags": ["x"], "rank": 7})
        second = Document("b", "a blue fish", None, {"year": 2004, "odd": 1})
        index.add([first, second, Document("c", "a red fish", None, {"odd": "one"})])
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
