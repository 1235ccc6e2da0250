"""``semsearch index``: output, errors and exit status."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from semsearch import Index
from semsearch.errors import SemsearchError
from tests.cli.conftest import CORPUS, code_of


class TestIndex:
    def test_warns_of_a_language_that_the_encoder_does_not_read(self, run, minilm, tmp_path):
        del minilm  # the fixture converts it
        rows = ["O gato dorme no tapete perto da janela.", "Hoje de manhã choveu muito na cidade."]
        (tmp_path / "pt.csv").write_text("\n".join(["text", *rows]), encoding="utf-8")
        first, again = (run("index", "pt.csv", "--index", "x").stderr for _ in range(2))
        assert "minilm does not read the language of these passages" in first
        assert "read the language" not in again  # no new documents

    @pytest.mark.parametrize(
        ("content", "options", "code"),
        [
            ("", [], "unreadable-corpus"),
            ("id,txt,b\n1,2,3\n", [], "column-not-found"),
            ("id,text\na,caf\xe9\n", [], "bad-row"),
            ("id,text\na,One.\nb\n", [], "bad-row"),
            ("id,text\na,b,c\n", ["--dry-run"], "bad-row"),
            (CORPUS, ["--encoder", "./no-model"], "model-not-found"),
            (CORPUS, ["--index", "."], "not-an-index"),
            (CORPUS, ["--index", "c.csv"], "not-an-index"),
            (CORPUS, ["--encoding", "klingon"], "unreadable-corpus"),
        ],
    )
    def test_a_mistake_leaves_nothing(self, run, tmp_path, content, options, code):
        (tmp_path / "c.csv").write_text(content, "latin-1")
        arguments = options if "--encoder" in options else [*options, "--encoder", "hashing"]
        assert code_of(run("index", "c.csv", *arguments, code=1)) == code
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


def test_a_failed_run_leaves_no_new_index(run, tmp_path):
    """The documents of the first run would be in the index twice."""
    rows = [f"R{number},Answer {number}." for number in range(420)]
    (tmp_path / "survey.csv").write_text("\n".join(["no,text", *rows, "Total,"]))
    command = ["index", "survey.csv", "--encoder", "hashing", "--id-column", "no"]
    assert "survey.csv:422: empty text" in run(*command, code=1).stderr
    assert not (tmp_path / "indexes" / "survey").exists()
    result = run(*command, "--skip-bad-rows")
    assert "420 documents (420 added, 1 bad row skipped)" in result.stdout
    assert run(*command, code=1).exit_code == 1
    with Index.open("indexes/survey") as index:
        assert len(index) == 420  # one that exists stays


class TestLaterRuns:
    """They read a corpus as the first one did."""

    @pytest.fixture
    def again(self, run):
        lines = [f"{number};schöne Grüße, {number};x" for number in range(5)]
        Path("a.csv").write_bytes("\n".join(lines).encode("cp1252"))
        options = "--encoding cp1252 --no-header --text-column 2 --id-column 1 --encoder hashing"
        run("index", "a.csv", *options.split())
        return functools.partial(run, "index", "a.csv")

    def test_need_no_options(self, again):
        assert "5 documents (5 unchanged), 0 passages" in again("--sync").stdout

    def test_refuse_other_ids(self, again):
        before = Path("indexes/a/index.sqlite").read_bytes()
        for option in ("--dry-run", "--sync", "--skip-bad-rows"):
            result = again("--id-column", "2", option, code=1)
            assert code_of(result) == "invalid-argument"
        assert Path("indexes/a/index.sqlite").read_bytes() == before


def test_documents_of_earlier_runs(run, tmp_path):
    (tmp_path / "more.csv").write_text("id,text\nd,A fourth text.\n")
    run("index", "corpus.csv", "--encoder", "hashing", "--index", "all")
    lines = run("index", "more.csv", "--index", "all").stdout.splitlines()
    assert lines[1] == "3 documents of earlier runs are also in the index"
    lines = run("index", "corpus.csv", "--index", "all").stdout.splitlines()
    assert lines[1] == "1 document of earlier runs is also in the index"


def test_ctrl_c_keeps_what_was_committed(tmp_path, interruptible):
    """The interrupt comes after the first batches of a large corpus."""
    rows = [json.dumps({"id": str(number), "text": f"Text {number}."}) for number in range(500_000)]
    (tmp_path / "large.jsonl").write_text("\n".join(rows))
    command = [sys.executable, "-m", "semsearch", "index", "large.jsonl", "--index", "x"]
    command += ["--encoder", "hashing"]
    pipes = {"stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes)
    deadline = time.monotonic() + 60
    documents = 0
    while documents == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
        with suppress(SemsearchError), Index.open(tmp_path / "x") as index:
            documents = len(index)
    process.send_signal(signal.SIGINT)
    messages = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 130, messages
    assert "Traceback" not in messages
    with Index.open(tmp_path / "x") as index:
        assert len(index) >= documents > 0
        assert f"{len(index):,} documents saved in" in messages
