"""``semsearch index``: output, errors and exit status."""

from __future__ import annotations

import functools
import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import openpyxl
import pytest

from semsearch import Document, Index
from semsearch.cli import index_command
from tests.cli.conftest import CORPUS, error_of


class TestIndex:
    def test_reports_the_columns_and_the_counts(self, run):
        result = run("index", "corpus.csv", "--encoder", "hashing")
        assert "corpus.csv: text from 'text', title from 'title', id from 'id'" in result.stderr
        assert result.stdout.startswith(
            "indexes/corpus: 3 documents (3 added), 3 chunks written in "
        )
        assert result.stdout.count("\n") == 1

    def test_reports_progress(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr("semsearch.cli.progress.LINE_EVERY_SECONDS", 0.0)
        rows = [f"{number},Text {number}." for number in range(600)]
        (tmp_path / "long.csv").write_text("\n".join(["id,text", *rows]))
        lines = run("index", "long.csv", "--encoder", "hashing").stderr.splitlines()
        assert lines[1] == "256 documents"  # the rate is measured from here on
        assert re.fullmatch(r"600 documents, [\d,]+/s, 0:00 left", lines[-1])

    def test_reindexing_changes_nothing(self, indexed):
        assert "3 documents (3 unchanged), 0 chunks" in indexed("index", "corpus.csv").stdout

    def test_several_files_into_one_index(self, run, tmp_path):
        (tmp_path / "more.jsonl").write_text('{"id": "d", "text": "A fourth."}\n')
        run("index", "corpus.csv", "more.jsonl", "--index", "all", "--encoder", "hashing")
        assert (
            json.loads(run("info", "--index", "all", "--format", "json").stdout)["documents"] == 4
        )

    def test_other_documents_in_the_index_are_counted(self, indexed, tmp_path):
        """As of a file with the same name in another format."""
        (tmp_path / "more.jsonl").write_text('{"id": "d", "text": "A fourth."}\n')
        result = indexed("index", "more.jsonl", "--index", "indexes/corpus")
        assert "1 document (1 added, 3 more in the index)" in result.stdout

    def test_standard_input(self, run):
        run("index", "-", "--index", "all", "--encoder", "hashing", typed=CORPUS)
        assert "documents: 3" in run("info", "--index", "all").stdout

    def test_sync_removes_missing_documents(self, indexed, tmp_path):
        (tmp_path / "corpus.csv").write_text("\n".join(CORPUS.splitlines()[:-1]))
        result = indexed("index", "corpus.csv", "--sync")
        assert "2 documents (2 unchanged, 1 removed)" in result.stdout

    def test_sample(self, run):
        assert "320 documents" in run("index", "--sample", "--encoder", "hashing").stdout
        assert "documents: 320" in run("info").stdout

    def test_portuguese_sample(self, run):
        result = run("index", "--sample", "pt", "--encoder", "hashing")
        assert result.stdout.startswith("indexes/notes-pt: 320 documents")
        assert "read the language" not in result.stderr  # hashing has no word pieces
        hits = run("query", "insônia", "--mode", "bm25", "-k", "1", "--format", "jsonl").stdout
        assert json.loads(hits)["hits"][0]["id"] == "health-02"
        assert "'xx' is not one of 'en', 'pt'" in run("index", "--sample", "xx", code=2).stderr

    def test_warns_of_a_language_that_the_encoder_does_not_read(self, run, minilm, tmp_path):
        del minilm  # the fixture converts it
        rows = ["O gato dorme no tapete perto da janela.", "Hoje de manhã choveu muito na cidade."]
        (tmp_path / "pt.txt").write_text("\n".join(rows), encoding="utf-8")
        warning = (
            "minilm does not read the language of 2 of 2 sampled passages well "
            "(1.8 pieces per word); teach it: "
            "semsearch train translate --parallel FILE --output DIR"
        )
        first = run("index", "pt.txt", "--input-format", "lines", "--index", "x")
        assert warning in first.stderr.splitlines()
        again = run("index", "pt.txt", "--input-format", "lines", "--index", "x")
        assert "read the language" not in again.stderr  # no new documents
        assert warning in run("info", "--index", "x").stdout.splitlines()
        info = json.loads(run("info", "--index", "x", "--format", "json").stdout)
        found = {"sampled": 2, "read_poorly": 2, "warns": True}
        assert info["spaces"][0]["vocabulary"] == found
        added = run("index", "--add-space", "hashing", "--index", "x")
        assert "read the language" not in added.stderr
        info = json.loads(run("info", "--index", "x", "--format", "json").stdout)
        assert info["spaces"][1]["vocabulary"] is None
        (tmp_path / "en.txt").write_text("A cat sleeps on the rug there.\nIt rained a lot today.")
        english = run("index", "en.txt", "--input-format", "lines", "--index", "y")
        assert "read the language" not in english.stderr + run("info", "--index", "y").stdout

    def test_bad_rows_are_listed_when_skipped(self, run, tmp_path):
        (tmp_path / "bad.csv").write_text("id,text\na,One.\nb,\nc\na,Two.\n")
        result = run("index", "bad.csv", "--encoder", "hashing", "--skip-bad-rows")
        assert "1 added, 3 bad rows skipped" in result.stdout
        assert [line for line in result.stderr.splitlines() if "skipped" in line] == [
            "skipped bad.csv:3: empty text",
            "skipped bad.csv:4: 1 cell where the header has 2",
            "skipped bad.csv:5: duplicate id 'a' (first in bad.csv:2)",
        ]

    @pytest.mark.parametrize(
        ("content", "options", "message"),
        [
            (None, [], "no such file: c.csv"),
            ("", [], "c.csv is empty"),
            ("id,text\n", [], "c.csv has a header but no rows"),
            (
                "id,txt,b\n1,2,3\n",
                [],
                "c.csv: cannot tell which column holds the text (columns: id, txt, b)",
            ),
            (CORPUS, ["--text-column", "txet"], "c.csv: no column 'txet'"),
            ("id,text\na,One.\na,Two.\n", [], "c.csv:3: duplicate id 'a' (first in c.csv:2)"),
            (
                b"id,text\na,caf\xe9\n",
                [],
                "c.csv:2: text holds byte 0xe9, which is not",
            ),
            ("id,text\na,One.\nb\n", [], "c.csv:3: 1 cell where the header has 2"),
            ("id,text\na,\n", [], "c.csv:2: empty text"),
            ("id,text\na,NaN\n", [], "c.csv:2: empty text"),
            (CORPUS, ["--encoder", "./no-model"], "no model folder ./no-model"),
            (CORPUS, ["--encoder", "no/model"], "no model 'no/model'"),
            (CORPUS, ["--index", "."], ". is not an index: it contains other files"),
            (CORPUS, ["--index", "c.csv"], "c.csv is a file, not an index directory"),
            (CORPUS, ["--encoding", "klingon"], "unknown encoding"),
        ],
    )
    def test_mistakes_are_one_line(self, run, tmp_path, content, options, message):
        if content is not None:
            content = content if isinstance(content, bytes) else content.encode()
            (tmp_path / "c.csv").write_bytes(content)
        arguments = options if "--encoder" in options else [*options, "--encoder", "hashing"]
        result = run("index", "c.csv", *arguments, code=1)
        error = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(error) == 1
        assert error[0] == result.stderr.splitlines()[-1]
        assert message in error[0]

    def test_an_unreadable_corpus_leaves_no_directory(self, run, tmp_path):
        run("index", "nothing.csv", code=1)
        (tmp_path / "c.csv").write_text("id,text\na,one\nb,two,three\n")
        run("index", "c.csv", "--encoder", "hashing", code=1)
        assert not (tmp_path / "indexes").exists()

    def test_newer_index_format_is_rejected(self, indexed, tmp_path):
        file = tmp_path / "indexes" / "corpus" / "index.sqlite"
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA user_version = 7")
        connection.close()
        for arguments in (["index", "corpus.csv"], ["query", "x"], ["info"], ["delete", "a"]):
            assert "index format 7" in indexed(*arguments, code=1).stderr

    def test_precision_is_accepted_for_an_existing_index(self, indexed):
        result = indexed("index", "corpus.csv", "--precision", "fp32")
        assert "3 documents (3 unchanged)" in result.stdout

    @pytest.mark.parametrize("statement", [None, "DELETE FROM settings; DELETE FROM spaces"])
    def test_interrupted_index_creation_is_repeated(self, run, minilm, tmp_path, statement):
        directory = tmp_path / "indexes" / "corpus"
        directory.mkdir(parents=True)
        if statement is None:
            (directory / "index.sqlite").touch()
        else:
            Index.create(directory, ["hashing"]).close()
            with sqlite3.connect(directory / "index.sqlite") as connection:
                connection.executescript(statement)
            connection.close()
        assert "3 documents (3 added)" in run("index", "corpus.csv").stdout

    def test_no_corpus(self, run):
        assert "name a corpus" in error_of(run("index", code=1))


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

    def test_leave_an_empty_folder_empty(self, survey, tmp_path):
        (tmp_path / "empty").mkdir()
        survey("--index", "empty", code=1)
        assert list((tmp_path / "empty").iterdir()) == []

    def test_keep_an_existing_index(self, survey, indexed):
        survey("--index", "indexes/corpus", code=1)
        with Index.open("indexes/corpus") as index:
            assert {"a", "b", "c"} <= {document.id for document in index}

    def test_keep_an_index_that_another_process_made_meanwhile(self, survey, monkeypatch):
        def opened(*arguments):
            with Index.create("indexes/survey", "hashing") as index:
                index.add([Document("other", "Of another process.")])
            return original(*arguments)

        original = index_command._opened
        monkeypatch.setattr(index_command, "_opened", opened)
        survey(code=1)
        with Index.open("indexes/survey") as index:
            assert "other" in index


class TestLaterRuns:
    """They read a corpus as the first one did."""

    def write(self, name):
        match Path(name).suffix:
            case ".xlsx":
                workbook(name, Y2023=[("1", "Old.", "text")], Y2024=ANSWERS[:5])
            case ".json":
                rows = [{"key": key, "msg": text} for key, text, _ in ANSWERS[:5]]
                Path(name).write_text(json.dumps({"meta": [{}], "data": {"items": rows}}))
            case ".csv":
                lines = [f"{key};schöne Grüße, {text}" for key, text, _ in ANSWERS[:5]]
                Path(name).write_bytes("\n".join(lines).encode("cp1252"))
            case ".sqlite":
                with closing(sqlite3.connect(name)) as database, database:
                    database.execute("CREATE TABLE answers (key, msg, kind)")
                    database.executemany("INSERT INTO answers VALUES (?, ?, ?)", ANSWERS[:5])

    FILES = (
        ("a.xlsx", "--sheet Y2024 --text-column Comment --id-column 1", "Kind"),
        ("a.json", "--records data.items --text-column msg --id-column key", "msg"),
        ("a.csv", "--encoding cp1252 --no-header --text-column 2 --id-column 1", "2"),
        ("a.csv", "--encoding cp1252 --no-header --text-column 2", "1"),
        ("a.sqlite", "--sql 'SELECT * FROM answers' --text-column msg --id-column key", "kind"),
    )

    @pytest.mark.parametrize(("name", "options", "other"), FILES)
    def test_need_no_options(self, run, name, options, other):
        self.write(name)
        run("index", name, *shlex.split(options), "--encoder", "hashing")
        for again in ([], shlex.split(options)):
            result = run("index", name, "--sync", *again)
            assert "5 documents (5 unchanged), 0 chunks" in result.stdout

    @pytest.mark.parametrize(("name", "options", "other"), FILES)
    def test_other_ids_are_refused(self, run, name, options, other):
        self.write(name)
        run("index", name, *shlex.split(options), "--encoder", "hashing")
        before = Path("indexes/a/index.sqlite").read_bytes()
        for option in ("--dry-run", "--sync", "--skip-bad-rows"):
            error = error_of(run("index", name, "--id-column", other, option, code=1))
            assert "indexes/a was made with" in error
        assert Path("indexes/a/index.sqlite").read_bytes() == before

    def test_options_take_precedence_and_are_recorded(self, run):
        self.write("a.xlsx")
        run("index", "a.xlsx", "--sheet", "Y2024", "--text-column", "Kind", "--encoder", "hashing")
        run("index", "a.xlsx", "--text-column", "Comment")
        assert "text from 'Comment'" in run("index", "a.xlsx").stderr

    def test_another_sheet_is_another_corpus(self, run):
        self.write("a.xlsx")
        columns = ["--text-column", "Comment", "--id-column", "1", "--encoder", "hashing"]
        run("index", "a.xlsx", "--sheet", "Y2024", *columns)
        result = run("index", "a.xlsx", "--sheet", "Y2023", "--text-column", "Comment")
        assert "1 document (1 added, 5 more in the index)" in result.stdout
        assert "no id column" in result.stderr

    def test_read_each_of_several_files_in_its_own_way(self, run, tmp_path):
        (tmp_path / "x.csv").write_text("ref,opinion\n1,Good.\n2,Bad.\n")
        (tmp_path / "y.csv").write_text("ref,remark\n3,Fast.\n4,Slow.\n")
        for name, text in (("x.csv", "opinion"), ("y.csv", "remark")):
            columns = ["--text-column", text, "--id-column", "ref"]
            run("index", name, *columns, "--index", "both", "--encoder", "hashing")
        result = run("index", "x.csv", tmp_path / "y.csv", "--sync", "--index", "both")
        assert "4 documents (4 unchanged), 0 chunks" in result.stdout

    def test_a_column_found_later_does_not_become_the_id(self, run, tmp_path):
        (tmp_path / "x.csv").write_text("text,year\nGood.,2024\nBad.,2025\n")
        run("index", "x.csv", "--encoder", "hashing")
        (tmp_path / "x.csv").write_text("id,text,year\n1,Good.,2024\n2,Bad.,2025\n")
        assert "2 with new metadata" in run("index", "x.csv").stdout

    def test_streams_are_not_recorded(self, run):
        run("index", "-", "--index", "x", "--encoder", "hashing", typed=CORPUS)
        run("index", "-", "--index", "x", "--id-column", "title", "--skip-bad-rows", typed=CORPUS)


class TestLanguageAndFilterColumns:
    def test_language(self, run):
        run("index", "corpus.csv", "--encoder", "hashing", "--language", "english")
        assert "BM25: Snowball stemmer 'english', 33 stop words" in (run("info").stdout)
        assert json.loads(run("info", "--format", "json").stdout)["language"]["name"] == "english"
        output = run("index", "--language", "none").stdout
        assert output == "indexes/corpus: BM25 uses the stemmer 'none'\n"
        assert "BM25: no stemmer, no stop words" in run("info").stdout

    def test_unknown_language_is_rejected_before_reading(self, run, tmp_path):
        result = run("index", "corpus.csv", "--language", "klingon", code=1)
        assert "no stemmer for 'klingon'" in error_of(result)
        assert not (tmp_path / "indexes").exists()

    def test_filter_columns(self, run):
        run("index", "corpus.csv", "--encoder", "hashing", "--filter-column", "year")
        assert "field year: number (3 documents), such as 1951, indexed" in run("info").stdout
        output = run("index", "--filter-column", "genres").stdout
        assert output == "indexes/corpus: field 'genres' is indexed for filters\n"
        shown = json.loads(run("info", "--format", "json").stdout)
        assert shown["indexed_fields"] == ["genres", "year"]
        result = run("index", "--filter-column", "yeer", code=1)
        assert error_of(result) == "no field 'yeer' (fields: genres, year)"
        result = run("index", "--filter-column", "title", code=1)
        assert error_of(result) == "'title' always has an index"

    def test_documents_are_added_despite_an_unknown_filter_column(self, run):
        options = ["--encoder", "hashing", "--filter-column", "yeer"]
        result = run("index", "corpus.csv", *options, code=1)
        assert "3 documents (3 added)" in result.stdout
        assert "Error: no field 'yeer' (fields: genres, year)" in result.stderr
        assert "documents: 3" in run("info").stdout


class TestIndexType:
    @pytest.fixture
    def many(self, run, tmp_path):
        lines = [f"{number},word{number % 7} thing{number % 11}" for number in range(200)]
        (tmp_path / "corpus.csv").write_text("\n".join(["id,text", *lines]))
        return run

    def snapshot(self, run):
        (space,) = json.loads(run("info", "--format", "json").stdout)["spaces"]
        return space["snapshot"]

    def test_with_a_corpus(self, many):
        many("index", "corpus.csv", "--encoder", "hashing", "--index-type", "hnsw")
        assert self.snapshot(many)["kind"] == "HNSW32,SQ8"
        assert "HNSW32,SQ8, 200 vectors, recall " in many("info").stdout
        assert many("query", "word3 thing4", "-k", "1").stdout.count("word3 thing4") == 1

    def test_of_an_existing_index(self, many):
        many("index", "corpus.csv", "--encoder", "hashing")
        assert self.snapshot(many)["kind"] == "flat"
        many("index", "--index-type", "IVF5,SQ8", "--recall", "0.9", "--index", "indexes/corpus")
        assert self.snapshot(many)["kind"] == "IVF5,SQ8"
        assert self.snapshot(many)["recall"] >= 0.8
        many("index", "--index-type", "auto", "--memory", "1GB")
        assert self.snapshot(many)["kind"] == "flat"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--index-type", "hsnw"], "no index type 'hsnw': auto, flat, hnsw, ivf"),
            (["--recall", "98"], "recall must be a number above 0, up to 1, not 98.0"),
            (["--memory", "lots"], "'lots' is not a size such as 500MB or 2GB"),
            (["--memory", "-1GB"], "is not a size"),
        ],
    )
    def test_mistakes_are_reported_before_reading(self, run, tmp_path, options, message):
        result = run("index", "corpus.csv", *options, code=2 if "--memory" in options else 1)
        assert message in result.stderr
        assert not (tmp_path / "indexes").exists()


class TestSpaces:
    def test_added_and_dropped(self, indexed):
        result = indexed("index", "--add-space", "hashing:16")
        assert (
            result.stdout == "indexes/corpus: space 'hashing-16' holds the vectors of 3 passages\n"
        )
        spaces = json.loads(indexed("info", "--format", "json").stdout)["spaces"]
        assert [space["name"] for space in spaces] == ["hashing", "hashing-16"]
        assert spaces[1]["snapshot"]["vectors"] == 3
        assert "Train" in indexed("query", "train", "--space", "hashing-16").stdout
        assert indexed("index", "--drop-space", "hashing").stdout.endswith("'hashing' dropped\n")
        assert "space hashing-16" in indexed("info").stdout

    def test_in_the_index_of_the_environment(self, indexed, monkeypatch):
        """It names the index that `info` shows; of several, the wrong one lost its space."""
        spaces = ["--encoder", "hashing", "--encoder", "hashing:16"]
        indexed("index", "corpus.csv", "--index", "other", *spaces)
        monkeypatch.setenv("SEMSEARCH_INDEX", "other")
        dropped = indexed("index", "--drop-space", "hashing")
        assert dropped.stdout == "other: space 'hashing' dropped\n"
        assert indexed("index", "--language", "german").stdout.startswith("other: BM25")
        named = indexed("index", "--language", "german", "--index", "indexes/corpus")
        assert named.stdout.startswith("indexes/corpus: BM25")
        assert indexed("index", "corpus.csv").stdout.startswith("indexes/corpus: 3 documents")

    def test_mistakes(self, indexed):
        assert "the only space" in error_of(indexed("index", "--drop-space", "hashing", code=1))
        for others in [], ["--add-space", "hashing"]:
            result = indexed("index", "--drop-space", "x", *others, code=1)
            assert "no space 'x'" in error_of(result)
        both = indexed("index", "corpus.csv", "--add-space", "hashing:16", code=1)
        assert "a corpus does not go with --add-space" in error_of(both)


def test_ctrl_c_keeps_what_was_committed(tmp_path, interruptible):
    """The corpus is an endless pipe; the interrupt comes after the first batches."""
    command = [
        sys.executable,
        "-m",
        "semsearch",
        "index",
        "-",
        "--index",
        "x",
        "--encoder",
        "hashing",
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for number in range(5000):
        process.stdin.write(json.dumps({"id": str(number), "text": f"Text {number}."}) + "\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    documents = 0
    while documents == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
        if (tmp_path / "x" / "index.sqlite").exists():
            with sqlite3.connect(tmp_path / "x" / "index.sqlite") as connection:
                try:
                    documents = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
                except sqlite3.OperationalError:
                    documents = 0
            connection.close()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    messages = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 130, messages
    assert "Traceback" not in messages
    with Index.open(tmp_path / "x") as index:
        assert len(index) >= documents > 0
        assert f"{len(index):,} documents saved in" in messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--language", "german", "--dry-run"], "--dry-run needs a corpus"),
        (["--filter-column", "year", "--sync"], "--sync needs a corpus"),
        (["--filter-column", "year", "--encoder", "minilm"], "--encoder needs a corpus"),
        (["--index-type", "flat", "--text-column", "x"], "--text-column needs a corpus"),
        (["--language", "german", "--no-header"], "--header needs a corpus"),
        (["--add-space", "hashing:64", "--language", "none"], "--language does not go with"),
        (["--add-space", "hashing:64", "--index-type", "hnsw"], "--index-type does not go with"),
        (["--drop-space", "hashing", "--filter-column", "year"], "--filter-column does not go"),
    ],
)
def test_options_that_would_be_ignored_are_refused(indexed, arguments, message):
    before = indexed("info", "--format", "json").stdout
    assert message in error_of(indexed("index", *arguments, code=1))
    assert indexed("info", "--format", "json").stdout == before
