"""``semsearch index``: output, errors and exit status."""

from __future__ import annotations

import functools
import json
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import openpyxl
import pytest

from semsearch import Index
from semsearch.errors import SemsearchError
from tests.cli.conftest import CORPUS, code_of


class TestIndex:
    def test_reports_progress(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr("semsearch.cli.progress.LINE_EVERY_SECONDS", 0.0)
        rows = [f"{number},Text {number}." for number in range(600)]
        (tmp_path / "long.csv").write_text("\n".join(["id,text", *rows]))
        lines = run("index", "long.csv", "--encoder", "hashing").stderr.splitlines()
        assert lines[1].split()[0] == "256"
        assert lines[-1].split()[0] == "600"

    def test_warns_of_a_language_that_the_encoder_does_not_read(self, run, minilm, tmp_path):
        del minilm  # the fixture converts it
        rows = ["O gato dorme no tapete perto da janela.", "Hoje de manhã choveu muito na cidade."]
        (tmp_path / "pt.csv").write_text("\n".join(["text", *rows]), encoding="utf-8")
        warning = "minilm does not read the language of these passages"
        first = run("index", "pt.csv", "--index", "x")
        assert warning in first.stderr
        again = run("index", "pt.csv", "--index", "x")
        assert "read the language" not in again.stderr  # no new documents
        (tmp_path / "en.csv").write_text("text\nA cat sleeps on the rug.\nIt rained a lot.")
        english = run("index", "en.csv", "--index", "y")
        assert "read the language" not in english.stderr

    @pytest.mark.parametrize(
        ("content", "options", "code"),
        [
            ("", [], "unreadable-corpus"),
            ("id,txt,b\n1,2,3\n", [], "column-not-found"),
            ("id,text\na,caf\xe9\n", [], "undecodable-text"),
            ("id,text\na,One.\nb\n", [], "bad-row"),
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

    def test_interrupted_index_creation_is_repeated(self, run, tmp_path):
        (tmp_path / "indexes" / "corpus").mkdir(parents=True)
        (tmp_path / "indexes" / "corpus" / "index.sqlite").touch()
        result = run("index", "corpus.csv", "--encoder", "hashing")
        assert "3 documents (3 added)" in result.stdout


ANSWERS = [(f"R{number:03}", f"Answer {number}.", "text") for number in range(420)]


def workbook(path, **sheets):
    """Write a workbook with these rows, below a heading and the names of their columns."""
    book = openpyxl.Workbook()
    book.active.title = "About"
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in [["Customer survey"], [], ["Resp. no.", "Comment", "Kind"], *rows]:
            sheet.append(row)
    book.save(path)


class TestRunsThatFail:
    @pytest.fixture
    def survey(self, run, tmp_path):
        workbook(tmp_path / "survey.xlsx", Answers=[*ANSWERS, ("Total", None, None)])
        options = ["--sheet", "Answers", "--text-column", "Comment", "--encoder", "hashing"]
        return functools.partial(run, "index", "survey.xlsx", *options)

    def test_leave_no_new_index(self, survey, tmp_path):
        """The documents of the first run would be in the index twice."""
        assert "row 424: empty text" in survey(code=1).stderr
        assert not (tmp_path / "indexes" / "survey").exists()
        result = survey("--id-column", "Resp. no.", "--skip-bad-rows")
        assert "420 documents (420 added, 1 bad row skipped)" in result.stdout


class TestLaterRuns:
    """They read a corpus as the first one did."""

    def write(self, name):
        match Path(name).suffix:
            case ".xlsx":
                workbook(name, Y2023=[("1", "Old.", "text")], Y2024=ANSWERS[:5])
            case ".csv":
                lines = [f"{key};schöne Grüße, {text}" for key, text, _ in ANSWERS[:5]]
                Path(name).write_bytes("\n".join(lines).encode("cp1252"))
            case ".sqlite":
                with closing(sqlite3.connect(name)) as database, database:
                    database.execute("CREATE TABLE answers (key, msg, kind)")
                    database.executemany("INSERT INTO answers VALUES (?, ?, ?)", ANSWERS[:5])

    FILES = (
        ("a.xlsx", "--sheet Y2024 --text-column Comment --id-column 1", "Kind"),
        ("a.csv", "--encoding cp1252 --no-header --text-column 2 --id-column 1", "2"),
        ("a.sqlite", "--sql 'SELECT * FROM answers' --text-column msg --id-column key", "kind"),
    )

    @pytest.mark.parametrize(("name", "options", "other"), FILES)
    def test_need_no_options_and_refuse_other_ids(self, run, name, options, other):
        self.write(name)
        run("index", name, *shlex.split(options), "--encoder", "hashing")
        for again in ([], shlex.split(options)):
            result = run("index", name, "--sync", *again)
            assert "5 documents (5 unchanged), 0 passages" in result.stdout
        before = Path("indexes/a/index.sqlite").read_bytes()
        for option in ("--dry-run", "--sync", "--skip-bad-rows"):
            result = run("index", name, "--id-column", other, option, code=1)
            assert code_of(result) == "invalid-argument"
        assert Path("indexes/a/index.sqlite").read_bytes() == before


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
