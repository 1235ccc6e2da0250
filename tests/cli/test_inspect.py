"""The ``semsearch inspect`` command: tokens, vectors and their cosines."""

from __future__ import annotations

import json
from functools import partial

import numpy
import pytest
from rich.cells import cell_len

from tests.cli.conftest import invoke

HASHING = ("--encoder", "hashing")
LEFT = "He will get scared"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch inspect` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    return partial(invoke, "inspect")


class TestOneText:
    def test_jsonl(self, run):
        (line,) = run(LEFT, "--format", "jsonl").stdout.splitlines()
        record = json.loads(line)
        ids = [token["id"] for token in record["tokens"]]
        assert ids == [101, 2002, 2097, 2131, 6015, 102]
        assert record["tokens"][0]["kind"] == "special"
        assert len(record["vector"]) == record["dimension"] == 384
        assert numpy.linalg.norm(record["vector"]) == pytest.approx(1, abs=1e-4)
        assert record["max_tokens"] == 254
        assert set(record["poolings"]) == {"first_mean", "first_sentence", "mean_sentence"}

    def test_truncated_tokens_are_reported(self, run):
        output = run("word " * 300 + "last").stdout
        assert "254 of 301" in output
        assert "1,269 of 1,504: word word" in output  # the first character that is not read

    def test_several_encoders(self, run):
        both = ("--encoder", "hashing:8", "--encoder", "hashing")
        lines = run("a b", *both, "--format", "jsonl").stdout.splitlines()
        assert [json.loads(line)["encoder"] for line in lines] == ["hashing:8", "hashing"]
        output = run("a b", *both).stdout
        assert output.index("hashing:8\n") < output.index("hashing\n")


class TestTwoTexts:
    def test_jsonl_is_the_matrix(self, run):
        record = json.loads(run("a b", "--against", "b c a", *HASHING, "--format", "jsonl").stdout)
        assert record["cosines"] == [[0, 0, 1], [1, 0, 0]]
        assert [token["piece"] for token in record["right"]["tokens"]] == ["b", "c", "a"]
        assert record["sentence_cosine"] == pytest.approx(2 / 6**0.5, abs=1e-5)

    def test_it_fits_a_narrow_terminal(self, run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        words = " ".join(f"extraordinarily{number} 漢字{number}" for number in range(60))
        output = run(words, "--against", words, *HASHING).stdout
        assert " 40 of 120 rows" in output
        assert " 7 of 120 columns" in output
        rows = [line for line in output.splitlines() if line.startswith(("extra", "漢字"))]
        assert len(rows) == 40
        assert {len(line.split()) for line in rows} == {8}
        assert max(cell_len(line) for line in output.splitlines()) <= 80
