"""The ``semsearch pairs`` command: output, options and errors."""

from __future__ import annotations

from functools import partial

import pytest

from semsearch import Document, Index
from semsearch.cli import pairs_command
from tests.cli.conftest import invoke, rows

CORPUS = """id,title,text
a,One,the cat sat on the mat
b,Two,"a baker, ""kneading"" dough
before dawn"
c,Three,the cat sat on the mat
d,Four,the cat sat on a mat
"""


@pytest.fixture
def run(tmp_path):
    """Call `semsearch pairs` in a folder with c.csv in it."""
    (tmp_path / "c.csv").write_text(CORPUS)
    return partial(invoke, "pairs")


HASHING = ("--encoder", "hashing")


def ids(result):
    return [(row["left_id"], row["right_id"]) for row in rows(result)]


def test_csv_reads_back(run):
    found = rows(run("c.csv", *HASHING, "--format", "csv"))
    assert list(found[0]) == ["score", "left_id", "right_id", "left_text", "right_text"]
    pairs = [(row["left_id"], row["right_id"]) for row in found]
    assert pairs[:3] == [("a", "c"), ("a", "d"), ("c", "d")]
    assert len(found) == 6
    scores = [float(row["score"]) for row in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1
    (text,) = {row["left_text"] for row in found if row["left_id"] == "b"}
    assert text == 'a baker, "kneading" dough\nbefore dawn'


def test_no_pairs(run):
    far = ("-", *HASHING, "-k", 5, "--min-score", 1)
    corpus = "id,text\na,one\nb,two\n"
    assert run(*far, "--format", "csv", typed=corpus).stdout.count("\n") == 1
    table = run(*far, typed=corpus)
    assert (table.stdout, table.stderr.splitlines()[-1]) == ("", "no pairs")


def test_all_pairs_with_the_minimum_score(run, tmp_path):
    lines = "".join(f"{number},same text\n" for number in range(30))
    (tmp_path / "c.csv").write_text(f"id,text\n{lines}")
    minimum = ("c.csv", *HASHING, "--min-score", 0.9)
    assert len(rows(run(*minimum, "--format", "csv"))) == 30 * 29 // 2
    assert "30 × 0: same text" in run(*minimum).stdout


def test_identical_texts_are_encoded_once(run, hashing, monkeypatch):
    seen = []

    class Counting:
        dimension = hashing.dimension

        def encode_documents(self, texts):
            seen.extend(texts)
            return hashing.encode_documents(texts)

    monkeypatch.setattr(pairs_command, "preload_for_documents", lambda *_: Counting())
    assert ids(run("c.csv", *HASHING, "-k", 1, "--format", "csv")) == [("a", "c")]
    assert len(seen) == len(set(seen)) == 3


def test_passages_of_an_index(run, tmp_path, monkeypatch):
    """Passages of one document are not compared, and stored vectors need no encoder."""
    monkeypatch.setattr(
        pairs_command, "preload_for_documents", lambda *_: pytest.fail("needs no encoder")
    )
    twice = " ".join(f"Sentence number {number} of this text." for number in range(100))
    with Index.create(tmp_path / "i", ["hashing", "hashing:16"]) as index:
        index.add([Document("gone", "the cat sat"), Document("long", twice + " " + twice)])
        index.add([Document("a", "the cat sat on"), Document("b", "the cat sat on")])
        index.delete(["gone"])
        assert index.info().passages > 4
    for arguments in (["i"], ["--index", "i"], ["--index", "i", "--space", "hashing-16"]):
        found = ids(run(*arguments, "--format", "csv"))
        assert found[0] == ("a", "b")
        assert set(found[1:]) == {("long", "a"), ("long", "b")}


def test_the_table_lists_groups_and_the_same_text_once(run, tmp_path):
    texts = ["a red fish", "a blue bird", "a red fish", "one red fish", "a red fish", "a word"]
    rows = [f"{name},{text}" for name, text in zip("abcdef", texts, strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(["id,text", *rows]), "utf-8")
    table = run("c.csv", *HASHING, "-k", 1).stdout.splitlines()
    assert [line.split()[-6:] for line in table[1:]] == [
        ["3", "×", "a:", "a", "red", "fish"],
        ["d:", "one", "red", "fish"],
    ]
