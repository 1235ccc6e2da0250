"""A bad row ends a run with its place, and the option that skips and lists all of them."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("name", "corpus", "place"),
    [
        ("a.json", '[{"text": "a"}, {"text": " "}]', ", item 2"),
        ("a.csv", "id,text\na,b,c\n", ":2"),
    ],
)
def test_the_first_bad_row_ends_a_run(run, tmp_path, name, corpus, place, more):
    (tmp_path / name).write_text(corpus)
    result = run("index", name, "--encoder", "hashing", *more, code=1)
    error = result.stderr.splitlines()[-1]
    assert error.startswith(f"Error: {name}{place}: ")
    assert "--skip-bad-rows" in error
    assert error.endswith("[bad-row]")
    assert not (tmp_path / "indexes").exists()


def test_skipped_rows_are_listed_and_counted(run, tmp_path):
    (tmp_path / "bad.csv").write_text("id,text\n1,one\n2,\n1,again\n3,three\nTotal,\n")
    arguments = ["index", "bad.csv", "--encoder", "hashing", "--skip-bad-rows"]
    for more, counted in (["--dry-run"], "3 bad rows to skip"), ([], "3 bad rows skipped"):
        result = run(*arguments, *more)
        lines = [line for line in result.stderr.splitlines() if line.startswith("skipped bad.csv:")]
        # Ids are compared a batch at a time.
        assert sorted(line.split(":")[1] for line in lines) == ["3", "4", "6"]
        assert counted in result.stdout
    (tmp_path / "all.jsonl").write_text("{bad\n" * 3)
    result = run("index", "all.jsonl", "--encoder", "hashing", "--skip-bad-rows", code=1)
    assert "all.jsonl:1: " in result.stderr
    assert "--skip-bad-rows" not in result.stderr
