"""The ``semsearch cluster`` command: output, options and errors."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke

ODD = 'a ship, a "fast" ship\nand another ship'
TOPICS = {
    "sea": ["ship ship ship", "ship", ODD, "ship ship"],
    "bread": ["dough oven", "dough oven dough oven", "oven dough"],
    "alone": ["moon"],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch cluster` in a folder with one index in it."""
    monkeypatch.chdir(tmp_path)
    with Index.create("indexes/one", ["hashing", "hashing:16"]) as index:
        index.add(
            Document(f"{topic}-{number}", text, metadata={"topic": topic, "number": number})
            for topic, texts in TOPICS.items()
            for number, text in enumerate(texts)
        )

    return partial(invoke, "cluster")


def records(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows(result):
    return list(csv.DictReader(io.StringIO(result.stdout, newline="")))


def members(result):
    return [set(record["members"]) for record in records(result)]


SEA = {"sea-0", "sea-1", "sea-2", "sea-3"}
BREAD = {"bread-0", "bread-1", "bread-2"}


class TestFormats:
    def test_table(self, run):
        lines = run("-n", 3).stdout.splitlines()
        groups = [line.split() for line in lines[1:] if not line.startswith(" ")]
        assert [group[:2] for group in groups] == [["1", "4"], ["2", "3"], ["3", "1"]]
        assert groups[1] == ["2", "3", "1.000", "dough,", "oven"]
        assert len(lines) == 1 + 3 + 3

    def test_jsonl(self, run):
        sea, bread, alone = records(run("-n", 3, "--format", "jsonl"))
        assert list(sea) == ["group", "size", "cohesion", "words", "examples", "members"]
        assert (sea["group"], sea["size"], sea["words"]) == (1, 4, ["ship"])
        assert set(sea["members"]) == SEA
        assert bread["cohesion"] == 1.0
        assert bread["examples"] == [{"id": "bread-0", "score": 1.0, "text": "dough oven"}]
        assert alone["members"] == ["alone-0"]

    def test_csv_reads_back(self, run):
        found = rows(run("-n", 3, "--format", "csv"))
        assert list(found[0]) == ["group", "group_words", "score", "document_id", "text"]
        assert [row["group"] for row in found] == ["1"] * 4 + ["2"] * 3 + ["3"]
        assert {row["document_id"]: row["text"] for row in found} == {
            f"{topic}-{number}": text
            for topic, texts in TOPICS.items()
            for number, text in enumerate(texts)
        }
        assert found[4]["group_words"] == "dough oven"
        assert found[4]["score"] == "1.0"

    def test_ungrouped_passages_are_reported(self, run):
        options = ("--min-score", 0.5, "--min-size", 3)
        result = run(*options, "--format", "jsonl")
        assert members(result) == [SEA, BREAD, {"alone-0"}]
        assert records(result)[2] == {"group": None, "size": 1, "members": ["alone-0"]}
        last = rows(run(*options, "--format", "csv"))[-1]
        assert last == dict(zip(last, ["", "", "", "alone-0", "moon"], strict=True))
        assert "moon" not in run(*options).stdout
