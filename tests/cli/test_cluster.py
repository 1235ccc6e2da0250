"""The ``semsearch cluster`` command: output, options and errors."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import pytest
from sqlalchemy import update

from semsearch import Document, Index
from semsearch.stores.local.schema import spaces
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
        result = run("-n", 3, "--examples", 2)
        lines = result.stdout.splitlines()
        assert lines[0].split() == ["size", "cohesion", "words"]
        assert lines[1].split()[:2] == ["1", "4"]
        assert "ship" in lines[1]
        assert lines[4].split() == ["2", "3", "1.000", "dough,", "oven"]
        assert lines[5] == "   dough oven"
        assert set(lines[6].split()) == {"dough", "oven"}
        assert "8 passages, 3 groups, in" in result.stderr

    def test_table_without_examples(self, run):
        assert len(run("-n", 3, "--examples", 0).stdout.splitlines()) == 1 + 3

    def test_jsonl(self, run):
        sea, bread, alone = records(run("-n", 3, "--format", "jsonl", "--words", 1))
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
        assert found[4]["score"] == "1.000000"

    def test_ungrouped_passages_are_reported(self, run):
        options = ("--min-score", 0.5, "--min-size", 3)
        result = run(*options, "--format", "jsonl")
        assert members(result) == [SEA, BREAD, {"alone-0"}]
        assert records(result)[2] == {"group": None, "size": 1, "members": ["alone-0"]}
        assert "8 passages, 2 groups, 1 passage ungrouped" in result.stderr
        last = rows(run(*options, "--format", "csv"))[-1]
        assert last == dict(zip(last, ["", "", "", "alone-0", "moon"], strict=True))
        assert "moon" not in run(*options).stdout

    def test_control_characters_are_not_printed(self, run):
        with Index.open("indexes/one") as index:
            index.add([Document("evil", "\x1b[2Jgone\x9b31m \u202etxet")])
        output = run("-n", 9).stdout
        assert "gone" in output
        assert not {"\x1b", "\x9b", "\u202e"} & set(output)


class TestSelection:
    def test_filter(self, run):
        found = members(run("-n", 2, "--where", "topic != 'alone'", "--format", "jsonl"))
        assert found == [SEA, BREAD]

    def test_filter_without_matches(self, run):
        for grouping in (["-n", 3], [], ["--min-score", 0.5]):
            result = run(*grouping, "--where", "number > 100")
            assert result.stdout == "no groups\n"
            assert "0 passages, 0 groups" in result.stderr
        assert run("--where", "number > 100", "--format", "csv").stdout.count("\n") == 1

    def test_another_space(self, run):
        first, second = (
            run("-n", 3, "--format", "csv", "--space", space).stdout
            for space in ("hashing", "hashing-16")
        )
        assert first != second
        assert run("-n", 3, "--format", "csv").stdout == first

    def test_same_seed_gives_the_same_groups(self, run):
        one, again = (run("-n", 4, "--seed", 3, "--format", "csv").stdout for _ in range(2))
        assert one == again

    def test_passages_of_a_long_document(self, run):
        long = " ".join(f"Sentence number {number} of this text." for number in range(200))
        with Index.open("indexes/one") as index:
            index.add([Document("long", long)])
        found = rows(run("-n", 2, "--format", "csv", "--where", "id = 'long'"))
        assert len(found) > 1
        assert {row["document_id"] for row in found} == {"long"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", 0], "the number of groups must be at least 1, not 0"),
        (["-n", 2, "--min-score", 0.5], "not both"),
        (["--min-size", 3], "a minimum size is only for groups with"),
        (["--min-score", 0.5, "--seed", 3], "--seed is for k-means"),
        (["--min-score", 2], "from -1 to 1, not 2.0"),
        (["--examples", -1], "the number of examples must be at least 0"),
        (["--space", "other"], "no space 'other' in this index"),
        (["--where", "yaer = 1"], "yaer"),
        (["--index", "nowhere"], "no index at nowhere"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    result = run(*arguments, code=1)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line


def test_incomplete_space_is_rejected(run):
    with Index.open("indexes/one") as index, index._store.database.write() as connection:
        connection.execute(update(spaces).where(spaces.c.name == "hashing").values(complete=0))
    assert "space 'hashing' still lacks vectors; finish it with" in run(code=1).stderr


def test_an_empty_index(run):
    with Index.create("indexes/empty", ["hashing"]):
        assert run("--index", "indexes/empty").stdout == "no groups\n"
