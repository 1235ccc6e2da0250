"""Bad rows and repeated options; golden/semsearch.txt has wrong command lines."""

from __future__ import annotations

import pytest

from tests.cli.conftest import code_of, invoke


@pytest.mark.parametrize("options", ["--text-column a --text-column b", "--sync --sync"])
def test_flags_and_multiple_options_can_be_repeated(options):
    result = invoke("index", "nowhere.csv", *options.split(), code=1)
    assert code_of(result) == "unreadable-corpus"


@pytest.mark.parametrize(
    ("name", "corpus", "place"),
    [
        ("a.json", '[{"text": "a"}, {"text": " "}]', ", item 2"),
        ("a.csv", "text\na\n \n", ":3"),
        ("a.csv", "id,text\na,b,c\n", ":2"),
    ],
)
def test_bad_row_suggests_skip_bad_rows(tmp_path, monkeypatch, name, corpus, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(corpus)
    result = invoke("index", name, "--encoder", "hashing", code=1)
    error = result.stderr.splitlines()[-1]
    assert error.startswith(f"Error: {name}{place}: ")
    assert "--skip-bad-rows" in error


def test_skip_bad_rows_is_not_suggested_if_given(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("{bad\n" * 3)
    index = ["--index", tmp_path / "x", "--encoder", "hashing:8"]
    result = invoke("index", corpus, *index, "--skip-bad-rows", code=1)
    assert "corpus.jsonl:1: " in result.stderr
    assert "--skip-bad-rows" not in result.stderr
