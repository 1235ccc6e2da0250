"""Bad rows that end a run are listed, up to twenty, with the option that skips them."""

from __future__ import annotations

import re

import pytest


def write(path, rows):
    lines = ["id,text,number", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def table(tmp_path):
    """Three bad rows: an empty text, a repeated id, and the total of a spreadsheet."""
    file = tmp_path / "bad.csv"
    write(file, [(1, "one", 5), (2, "", 6), (1, "again", 7), (3, "three", 8), ("Total", "", 26)])
    return file


def listed(result):
    """The lines of bad.csv that are listed."""
    return [int(line) for line in re.findall(r"^bad\.csv:(\d+): ", result.stderr, re.MULTILINE)]


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_all_bad_rows_of_a_short_table(run, table, more):
    result = run("index", table.name, "--encoder", "hashing", *more, code=1)
    assert sorted(listed(result)) == [3, 4, 6]  # ids are compared a batch at a time
    assert result.stderr.splitlines()[-1].endswith("[bad-row]")


def test_at_most_twenty(run, tmp_path):
    write(tmp_path / "bad.csv", [(number, "", 0) for number in range(30)])
    result = run("index", "bad.csv", "--encoder", "hashing", code=1)
    assert listed(result) == list(range(2, 22))


def test_a_single_one_and_standard_input(run, tmp_path):
    write(tmp_path / "bad.csv", [(1, "one", 5), (2, "", 6)])
    result = run("index", "bad.csv", "--encoder", "hashing", code=1)
    assert result.stderr.splitlines()[-1].startswith("Error: bad.csv:3: ")
    bad = "id,text\n1,\n2,\n"  # which cannot be read again
    result = run("index", "-", "--encoder", "hashing", code=1, typed=bad)
    assert result.stderr.splitlines()[-1].startswith("Error: stdin:2: ")


@pytest.mark.parametrize(
    ("name", "corpus", "place"),
    [
        ("a.json", '[{"text": "a"}, {"text": " "}]', ", item 2"),
        ("a.csv", "id,text\na,b,c\n", ":2"),
    ],
)
def test_the_option_that_skips_them_is_suggested_unless_given(run, tmp_path, name, corpus, place):
    (tmp_path / name).write_text(corpus)
    error = run("index", name, "--encoder", "hashing", code=1).stderr.splitlines()[-1]
    assert error.startswith(f"Error: {name}{place}: ")
    assert "--skip-bad-rows" in error
    (tmp_path / "bad.jsonl").write_text("{bad\n" * 3)
    result = run("index", "bad.jsonl", "--encoder", "hashing", "--skip-bad-rows", code=1)
    assert "bad.jsonl:1: " in result.stderr
    assert "--skip-bad-rows" not in result.stderr
