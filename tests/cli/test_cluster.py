"""The ``semsearch cluster`` command: output, options and errors."""

from __future__ import annotations

from functools import partial

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke, rows

ODD = 'a ship, a "fast" ship\nand another ship'
TOPICS = {
    "sea": ["ship ship ship", "ship", ODD, "ship ship"],
    "bread": ["dough oven", "dough oven dough oven", "oven dough"],
    "alone": ["moon"],
}
TEXTS = {f"{topic}-{n}": text for topic, texts in TOPICS.items() for n, text in enumerate(texts)}


@pytest.fixture
def run():
    """Call `semsearch cluster` in a folder with one index in it."""
    with Index.create("indexes/one", ["hashing", "hashing:16"]) as index:
        index.add(
            Document(name, text, metadata={"topic": name[:-2], "number": int(name[-1])})
            for name, text in TEXTS.items()
        )
    return partial(invoke, "cluster")


def test_csv_reads_back(run):
    found = rows(run("-n", 3, "--format", "csv"))
    assert list(found[0]) == ["group", "group_words", "score", "document_id", "text"]
    assert [row["group"] for row in found] == ["1"] * 4 + ["2"] * 3 + ["3"]
    assert {row["document_id"]: row["text"] for row in found} == TEXTS
    assert (found[4]["group_words"], found[4]["score"]) == ("dough oven", "1.0")


def test_ungrouped_passages_are_last(run):
    result = run("--min-score", 0.5, "--min-size", 3, "--format", "csv")
    assert "8 passages, 2 groups, 1 passage ungrouped" in result.stderr
    found = rows(result)
    assert [row["document_id"].split("-")[0] for row in found[:7]] == ["sea"] * 4 + ["bread"] * 3
    assert list(found[7].values()) == ["", "", "", "alone-0", "moon"]
    assert "moon" not in run("--min-score", 0.5, "--min-size", 3).stdout


def test_a_space_and_a_filter(run):
    where = ["--where", "topic = 'bread' and number < 2"]
    found = rows(run("-n", 1, "--space", "hashing-16", "--format", "csv", *where))
    assert sorted(row["document_id"] for row in found) == ["bread-0", "bread-1"]
