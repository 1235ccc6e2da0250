"""The ``semsearch inspect`` command: tokens, vectors and their cosines."""

from __future__ import annotations

from functools import partial

from rich.cells import cell_len

from tests.cli.conftest import invoke

run = partial(invoke, "inspect")


def test_truncated_tokens_are_reported():
    output = run("word " * 300 + "last").stdout
    assert "254 of 301" in output
    assert "1,269 of 1,504: word word" in output  # the first character that is not read


def test_tokens():
    lines = run("Sinan will get [it]").stdout.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("   token")]
    tokens = [line.split() for line in lines[place + 1 : -1]]
    assert " ".join(token[1] for token in tokens) == "[CLS] sin ##an will get [ it ] [SEP]"
    assert tokens[0][2:5] == ["101", "yes", "special"]
    assert tokens[3][2:7] == ["2097", "yes", "text", "6-10", "will"]


def test_two_texts_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = " ".join(f"extraordinarily{number} 漢字{number}" for number in range(60))
    output = run(words, "--against", words, "--encoder", "hashing").stdout
    assert " 40 of 120 rows" in output
    assert " 7 of 120 columns" in output
    rows = [line for line in output.splitlines() if line.startswith(("extra", "漢字"))]
    assert len(rows) == 40
    assert {len(line.split()) for line in rows} == {8}
    assert max(cell_len(line) for line in output.splitlines()) <= 80
