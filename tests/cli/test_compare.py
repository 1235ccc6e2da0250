"""The ``semsearch compare`` command: output, options and errors."""

from __future__ import annotations

from functools import partial

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke

TEXTS = {"a": "a red fox", "b": "a red hen", "c": "bread and butter"}


@pytest.fixture
def run():
    with Index.create("indexes/one", ["hashing", "hashing:64"]) as index:
        index.add([Document(name, text) for name, text in TEXTS.items()])
    return partial(invoke, "compare")


def test_neighbours(run, monkeypatch):
    first, *rest = run("red fox", "--system", "hashing", "--system", "bm25").stdout.splitlines()
    assert first.split() == ["hashing", "bm25"]
    heads = [line.split()[:4] for line in rest if line[:1].isdigit()]
    assert heads[:2] == [["1", "*", "0.816", "a"], ["2", "*", "0.408", "b"]]
    assert rest[-1] == "hashing and bm25: 2 documents shared"
    one = run("red fox", "--system", "hashing", "--system", "bm25", "-k", 1).stdout
    assert [line[:1] for line in one.splitlines()][1:3] == ["1", " "]
    assert "bread" not in one
    only = run("red fox", "--where", "id = 'c'").stdout
    assert "bread and butter" in only
    assert "red hen" not in only
    monkeypatch.setenv("SEMSEARCH_INDEX", "indexes/one")  # unlike --index, not refused
    assert run("--sentence", "a fox", "--sentence", "a fox").stdout.count("1.000") == 4
