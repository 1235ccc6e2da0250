"""Reports of ``semsearch eval … --report DIR``."""

from __future__ import annotations

import sys

import pytest

from semsearch.report import page
from tests.cli.conftest import code_of, invoke

PAIRS = """sentence1,sentence2,score
the cat sleeps,the cat sleeps now,4.5
a dog barks,the dog barks,4
it rains,he cooks,0
<b>bold</b> words,bold words,3
one two,three four,0.5
"""
JUDGED = """query,passage,relevance
cat,the cat sleeps,1
cat,a dog barks,0
dog,a dog barks,1
dog,it rains,0
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch eval` in a folder with data, with the arguments in `sys.argv`, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS, "utf-8")
    (tmp_path / "judged.csv").write_text(JUDGED, "utf-8")

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["semsearch", "eval", *arguments])
        return invoke("eval", *arguments, code=code)

    return call


STS = ("sts", "--data", "pairs.csv", "--system", "hashing")
IR = ("ir", "--data", "judged.csv", "--system", "bm25", "--system", "hashing")


@pytest.mark.parametrize("arguments", [STS, IR])
def test_report(arguments, run, tmp_path):
    run(*arguments, "--report", "a b/out")
    page = (tmp_path / "a b" / "out" / "index.html").read_text("utf-8")
    command = f"<code>semsearch eval {' '.join(arguments)} --report &#39;a b/out&#39;</code>"
    assert command in page
    assert "fingerprint of hashing" in page
    assert "<b>bold" not in page


def test_mistakes_are_reported_before_evaluation(run, tmp_path, monkeypatch):
    for arguments in (STS, IR):
        result = run(*arguments, "--report", "pairs.csv", code=1)
        assert code_of(result) == "unusable-output"
    run("sts", "--data", "none.csv", "--report", "out", code=1)
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    assert code_of(run(*STS, "--report", "out", code=1)) == "missing-extra"
    assert {file.name for file in tmp_path.iterdir()} == {"pairs.csv", "judged.csv"}
    assert (tmp_path / "pairs.csv").read_text("utf-8") == PAIRS
