"""The ``semsearch inspect`` command: tokens, vectors and their cosines."""

from __future__ import annotations

from functools import partial

from rich.cells import cell_len

from tests.cli.conftest import invoke

HASHING = ("--encoder", "hashing")


run = partial(invoke, "inspect")


class TestOneText:
    def test_truncated_tokens_are_reported(self):
        output = run("word " * 300 + "last").stdout
        assert "254 of 301" in output
        assert "1,269 of 1,504: word word" in output  # the first character that is not read

    def test_tokens(self):
        lines = run("Sinan will get [it]").stdout.splitlines()
        (place,) = [number for number, line in enumerate(lines) if line.startswith("   token")]
        tokens = [line.split() for line in lines[place + 1 : -1]]
        assert " ".join(token[1] for token in tokens) == "[CLS] sin ##an will get [ it ] [SEP]"
        assert tokens[0][2:5] == ["101", "yes", "special"]
        assert tokens[3][2:7] == ["2097", "yes", "text", "6-10", "will"]

    def test_several_encoders(self):
        output = run("a b", "--encoder", "hashing:8", "--encoder", "hashing").stdout
        assert output.index("hashing:8\n") < output.index("hashing\n")


class TestTwoTexts:
    def test_matrix(self):
        lines = run("a b", "--against", "b c a", *HASHING).stdout.splitlines()
        assert [line.split() for line in lines[3:6]] == [
            ["b", "c", "a"],
            ["a", "0.00", "0.00", "1.00"],
            ["b", "1.00", "0.00", "0.00"],
        ]
        assert lines[6:8] == ["in both: a 1.00, b 1.00", "the two sentence vectors: 0.82"]

    def test_it_fits_a_narrow_terminal(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        words = " ".join(f"extraordinarily{number} 漢字{number}" for number in range(60))
        output = run(words, "--against", words, *HASHING).stdout
        assert " 40 of 120 rows" in output
        assert " 7 of 120 columns" in output
        rows = [line for line in output.splitlines() if line.startswith(("extra", "漢字"))]
        assert len(rows) == 40
        assert {len(line.split()) for line in rows} == {8}
        assert max(cell_len(line) for line in output.splitlines()) <= 80
