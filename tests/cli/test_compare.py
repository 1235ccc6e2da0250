"""The ``semsearch compare`` command: output, options and errors."""

from __future__ import annotations

import json
from functools import partial

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke

TEXTS = {"a": "a red fox", "b": "a red hen", "c": "bread and butter"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("indexes/one", ["hashing", "hashing:64"]) as index:
        index.add([Document(name, text) for name, text in TEXTS.items()])

    return partial(invoke, "compare")


def test_jsonl(run):
    arguments = ["--system", "hashing", "--system", "bm25", "--format", "jsonl"]
    first, second, agreement = map(json.loads, run("red fox", *arguments).stdout.splitlines())
    assert (first["system"], second["system"]) == ("hashing", "bm25")
    assert [hit["id"] for hit in first["hits"]][:2] == ["a", "b"]
    assert [hit["found_by"] for hit in first["hits"]] == [2, 2, 1]
    assert agreement == {"left": "hashing", "right": "bm25", "shared": 2}


def test_sentences(run, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_INDEX", "indexes/one")  # unlike --index, not refused
    arguments = ["--sentence", "a red fox", "--sentence", "a red hen", "--system", "hashing"]
    assert "0.667" in run(*arguments).stdout  # two of three words
    line = json.loads(run(*arguments, "--format", "jsonl").stdout)
    assert line["sentences"] == ["a red fox", "a red hen"]
    assert line["matrix"][0] == pytest.approx([1, 2 / 3], abs=1e-6)
