"""The ``semsearch compare`` command: output, options and errors."""

from __future__ import annotations

import json
from functools import partial

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke

TEXTS = {"a": "a red fox", "b": "a red hen", "c": "bread and \x1b[31mbutter"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Index.create("indexes/one", ["hashing", "hashing:64"]) as index:
        index.add([Document(name, text) for name, text in TEXTS.items()])

    return partial(invoke, "compare")


def test_side_by_side(run):
    output = run("red fox", "-k", "2").stdout
    assert "hashing-64" in output
    assert "bm25" in output
    assert "* 1.000 a" not in output
    assert output.count("* ") == 7  # both hits of three systems, and the legend
    assert "hashing and bm25: too few shared documents (2) for a rank correlation" in output
    assert "hashing and hashing-64: 3 documents shared, rank correlation +1.00 (Kendall, " in (
        run("red fox").stdout
    )


def test_control_characters_are_not_printed(run):
    assert "\x1b" not in run("bread").output


def test_jsonl(run):
    arguments = ["--system", "hashing", "--system", "bm25", "--format", "jsonl"]
    first, second, agreement = map(json.loads, run("red fox", *arguments).stdout.splitlines())
    assert (first["system"], second["system"]) == ("hashing", "bm25")
    assert [hit["id"] for hit in first["hits"]][:2] == ["a", "b"]
    assert [hit["found_by"] for hit in first["hits"]] == [2, 2, 1]
    assert first["hits"][0]["judge"] is None
    assert (agreement["shared"], agreement["rank_correlation"]) == (2, None)


def test_sentences(run, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_INDEX", "indexes/one")  # unlike --index, not refused
    arguments = ["--sentence", "a red fox", "--sentence", "a red hen", "--system", "hashing"]
    assert "0.667" in run(*arguments).stdout  # two of three words
    line = json.loads(run(*arguments, "--format", "jsonl").stdout)
    assert line["sentences"] == ["a red fox", "a red hen"]
    assert line["matrix"][0] == pytest.approx([1, 2 / 3], abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a TEXT"),
        (["x", "--system", "hashing"], "two or more different systems"),
        (["x", "--system", "hashing", "--system", "none"], "no space 'none'"),
        (["--sentence", "x"], "two or more sentences"),
        (["x", "--sentence", "y", "--sentence", "z"], "--sentence can only be used with"),
        (["--sentence", "y", "--sentence", "z", "-k", "3"], "--sentence can only be used with"),
        (["--sentence", "y", "--index", "."], "--sentence can only be used with"),
        (["x", "--judge", "./none"], "no model folder"),
        (["x", "--index", "none"], "none"),
        (["x", "-k", "0"], "k must be at least 1"),
        (["  "], "the query is empty"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    result = run(*arguments, code=1)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
