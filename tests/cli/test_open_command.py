"""A file is searched by its name: `semsearch open FILE` and `semsearch query TEXT FILE`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import CORPUS, code_of, rows


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("semsearch.cli.index_command.DEFAULT_ENCODER", "hashing")
    return tmp_path / "cache" / "indexes"


def test_later_calls_encode_what_changed(run, tmp_path, cache):
    first = run("query", "boats race", "corpus.csv", "--format", "csv")
    assert rows(first)[0]["id"] == "c"
    assert "text from 'text'" in first.stderr
    (directory,) = cache.iterdir()
    last = first.stderr.splitlines()[-1]
    assert str(directory) in last
    (tmp_path / "corpus.csv").write_text(CORPUS.replace("Two boats", "Three ships") + "d,,New,,\n")
    changed = run("query", "ships race", "corpus.csv", "-k", 1, "--format", "csv")
    assert "2 texts encoded, 0 removed" in changed.stderr
    assert rows(changed)[0]["text"] == "Three ships race across the bay."
    (tmp_path / "corpus.csv").write_text(CORPUS)
    assert "1 text encoded, 1 removed" in run("query", "x", "corpus.csv").stderr
    assert run("query", "x", "corpus.csv").stderr.splitlines() == [last]
    assert list(cache.iterdir()) == [directory]
    run(*last.partition("semsearch ")[2].split())
    kept = run("query", "boats race", "-k", 1, "--index", "indexes/corpus", "--format", "csv")
    assert rows(kept)[0]["id"] == "c"


def test_what_a_row_said_before_is_forgotten_beside_rows_without_text(run, tmp_path):
    """Neither has an id, but rows that cannot be used hide no document."""
    file = tmp_path / "survey.csv"
    file.write_text("comment,n\nIt is too loud in here.,1\n,2\nThe food was good today.,3\n")
    assert "empty text" in run("query", "loud", "survey.csv").stderr
    file.write_text("comment,n\nIt is quiet in here.,1\n,2\nThe food was good today.,3\n")
    again = run("query", "loud", "survey.csv")
    assert "1 text encoded, 1 removed" in again.stderr
    assert "too loud" not in again.stdout


def test_what_is_a_file_and_what_a_text(indexed, tmp_path, cache):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/a.txt").write_text("a text in a folder")
    for texts in (["boats", "train"], ["corpus.csv"], ["boats", "corpus.csv", "--index", "corpus"]):
        indexed("query", *texts)
    assert not cache.exists()
    found = indexed("query", "boats", f"train{os.sep}", "corpus.csv", "--format", "csv")
    assert [row["id"] for row in rows(found)][:1] == ["c"]
    assert {row["id"] for row in rows(found)} == {"a", "b", "c", "a.txt"}
    assert (
        "a text in a folder"
        in indexed("query", "--like", "a", f"train{os.sep}", "corpus.csv").stdout
    )


def test_a_failure_leaves_nothing(run, tmp_path, cache):
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n3,4\n")
    for name, code in (("numbers.csv", "column-not-found"), ("nothing.csv", "unreadable-corpus")):
        assert code_of(run("open", name, code=1)) == code
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a POSIX signal")
@pytest.mark.usefixtures("run")
def test_the_page_is_opened_until_ctrl_c(tmp_path, cache):
    pytest.importorskip("fastapi", reason="the page needs the extra 'serve'")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "semsearch", "open", "corpus.csv"],
        env=os.environ | {"BROWSER": str(browser)},
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = iter(process.stderr.readline, "")
    address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
    with urllib.request.urlopen(f"{address}v1/indexes", timeout=60) as answer:  # noqa: S310
        assert [(one["name"], one["documents"]) for one in json.load(answer)] == [("corpus", 3)]
    assert (tmp_path / "opened").read_text().strip() == address
    process.send_signal(signal.SIGINT)
    (directory,) = cache.iterdir()
    *_, last = lines
    assert last.startswith(f"index: {directory}; ")
    assert process.wait(timeout=60) == 0
    process.stderr.close()
    assert not Path("indexes").exists()
