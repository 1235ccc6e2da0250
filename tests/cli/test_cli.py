"""The commands end to end: their output, errors and exit status."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import COMMANDS, main

CORPUS = """id,title,text,year,genres
a,Night Train,A train crosses the mountains at night.,1951,"[""Drama"", ""Mystery""]"
b,Bread,The baker kneads dough before dawn.,1999,"[""Drama""]"
c,,Two boats race across the bay.,2004,[]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch` in a folder that contains only corpus.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    (tmp_path / "corpus.csv").write_text(CORPUS)

    def call(*arguments, code=0, typed=None):
        result = CliRunner().invoke(main, [str(item) for item in arguments], input=typed)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def indexed(run):
    run("index", "corpus.csv", "--encoder", "hashing")
    return run


def error_of(result):
    """The error message without its code; it must be the last line on standard error."""
    assert result.stdout == ""
    *notes, line = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert not any(note.startswith("Error") for note in notes)
    message, _, code = line.removeprefix("Error: ").rpartition(" [")
    assert re.fullmatch(r"[a-z-]+\]", code)
    return message


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


class TestQuery:
    def test_table(self, indexed):
        shown = ["--show", "year", "--show", "genres"]
        lines = indexed("query", "train at night", "-k", "1", *shown).stdout.splitlines()
        assert lines[0] == "   score  title"
        head = r"1  0\.\d{3}  Night Train  year: 1951  genres: Drama, Mystery"
        assert re.fullmatch(head, lines[1])
        assert lines[2:] == ["   A train crosses the mountains at night."]

    @pytest.mark.parametrize("columns", ["60", "80", "200", "0", "x", None])
    def test_passages_fit_the_width(self, run, tmp_path, monkeypatch, columns):
        """The width is COLUMNS, or 120 if it is unset or invalid, but at most 100."""
        words = "word " * 40
        with Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
            index.add([Document("a", words, "A title of many words " * 8)])
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        lines = run("query", "word").stdout.splitlines()
        width = {"60": 60, "80": 80}.get(columns, 100)
        assert lines[-2] == "   " + ("word " * ((width - 2) // 5)).rstrip()
        assert all(len(line) <= width and line == line.rstrip() for line in lines)
        (number,) = [place for place, line in enumerate(lines) if line.startswith("1")]
        title = [line for line in lines[number:] if "word " not in line]
        assert all(line.startswith("          ") for line in title[1:])

    def test_jsonl(self, indexed):
        line = json.loads(indexed("query", "train at night", "--format", "jsonl", "-k", "2").stdout)
        assert line["query"] == "train at night"
        assert [hit["rank"] for hit in line["hits"]] == [1, 2]
        assert {"rank", "score", "id", "text", "metadata"} <= set(line["hits"][0])
        assert line["hits"][0]["id"] == "a"
        assert line["hits"][0]["metadata"] == {"year": 1951, "genres": ["Drama", "Mystery"]}

    def test_csv(self, indexed):
        output = indexed("query", "train at night", "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(output)))
        assert list(rows[0]) == [
            *("query", "rank", "score", "cosine", "bm25", "reranked", "id", "title", "text"),
            *("genres", "year"),
        ]
        assert (rows[0]["id"], rows[0]["genres"]) == ("a", "Drama, Mystery")
        assert len(rows) == 3

    def test_metadata_field_with_the_name_of_a_built_in_one(self, run, tmp_path):
        with Index.create(tmp_path / "indexes" / "x", ["hashing"]) as index:
            own = {"id": "mine", "title": "also mine", "metadata.id": "deep"}
            index.add([Document("a", "train", "Title", own)])
        row = next(csv.DictReader(io.StringIO(run("query", "train", "--format", "csv").stdout)))
        assert (row["id"], row["metadata.id"], row["metadata.metadata.id"]) == ("a", "mine", "deep")
        assert (row["title"], row["metadata.title"]) == ("Title", "also mine")
        shown = ["--show", "id", "--show", "metadata.id", "--show", "metadata.metadata.id"]
        output = run("query", "train", *shown).stdout.split()
        assert [output.count(cell) for cell in ("a", "mine", "deep")] == [1, 1, 1]
        assert "Title" in output

    def test_queries_from_a_file(self, indexed, tmp_path):
        (tmp_path / "questions.txt").write_text("train\nbread dough\n")
        output = indexed("query", "--queries", "questions.txt", "--format", "jsonl").stdout
        assert [json.loads(line)["query"] for line in output.splitlines()] == [
            "train",
            "bread dough",
        ]
        table = indexed("query", "--queries", "-", typed="train\n").stdout
        assert table.startswith("train\n")

    def test_where(self, indexed):
        where = "year >= 1990 and genres = 'Drama'"
        line = json.loads(indexed("query", "x", "--where", where, "--format", "jsonl").stdout)
        assert [hit["id"] for hit in line["hits"]] == ["b"]
        nothing = indexed("query", "x", "--where", "year > '3000'")
        assert nothing.stdout == "no hits\n"
        assert nothing.stderr.splitlines() == [
            "where: year holds numbers; reading '3000' as 3000",
            "where: no document matches; year > 3000: nearest: 2004",
        ]

    @pytest.mark.parametrize("mode", ["bm25", "hybrid"])
    def test_modes(self, indexed, mode):
        assert "Night Train" in indexed("query", "train", "--mode", mode, "-k", "1").stdout

    def test_control_characters_are_not_printed(self, run, tmp_path):
        evil = "\x1b[2Jgone\x1b]0;title\x07 \x9b31m \u202etxet"
        with Index.create(tmp_path / "indexes" / "evil", ["hashing"]) as index:
            index.add([Document(evil, evil, evil, {evil: evil})])
        output = run("query", "gone", "--show", evil).stdout
        assert "gone" in output
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(output)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["x", "-k", "0"], "k must be at least 1, not 0"),
            (["x", "--where", "yaer = 1"], "nearest: year"),
            (["x", "--where", "year ="], "where: "),
            (["x", "--space", "other"], "no space 'other' in this index (spaces: hashing)"),
            (["x", "--encoder", "hashing"], "name a space of the index: --space hashing"),
            (["x", "--show", "price"], "no field 'price' (fields: genres, year, id, title)"),
            (["x", "--index", "nowhere"], "no index at nowhere"),
            (["x", "--index", "corpus.csv"], "corpus.csv is a file"),
            ([" "], "the query is empty"),
            ([], "give a TEXT"),
            (["x", "--queries", "q.txt"], "not both"),
            (["x", "--encoding", "utf-8"], "--encoding needs --queries FILE"),
            (["--queries", "q.txt"], "no such file: q.txt"),
        ],
    )
    def test_mistakes_are_one_line(self, indexed, arguments, message):
        assert message in error_of(indexed("query", *arguments, code=1))

    @pytest.mark.parametrize(
        ("content", "queries", "messages"),
        [
            ("a\n\nb\n", ["a", "b"], "q.txt: 1 blank line skipped (line 2)\n"),
            ("\ufeffa\n \n\nb", ["a", "b"], "q.txt: 2 blank lines skipped (line 2, 3)\n"),
            (
                "a\n" + 12 * "\n",
                ["a"],
                "q.txt: 12 blank lines skipped (line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …)\n",
            ),
            ("\ufeff\n\n", [], "q.txt contains no query\n"),
            ("", [], "q.txt contains no query\n"),
            ("a\n", ["a"], ""),
        ],
    )
    def test_blank_lines_among_queries(self, indexed, tmp_path, content, queries, messages):
        (tmp_path / "q.txt").write_text(content, "utf-8")
        result = indexed("query", "--queries", "q.txt", "--format", "jsonl")
        assert [json.loads(line)["query"] for line in result.stdout.splitlines()] == queries
        assert result.stderr == messages

    @pytest.mark.parametrize("how", ["file", "stdin"])
    def test_queries_in_another_encoding(self, indexed, tmp_path, how):
        content = "plain\nLe café est situé près de la forêt\n".encode("cp1252")
        (tmp_path / "q.txt").write_bytes(content)
        name, typed = ("q.txt", None) if how == "file" else ("-", content)
        result = indexed("query", "--queries", name, typed=typed, code=1)
        shown = "q.txt" if how == "file" else "stdin"
        assert result.stderr == (
            f"Error: {shown}:2: byte 0xe9 is not UTF-8; the file looks like windows-1252: "
            "--encoding windows-1252 [unreadable-corpus]\n"
        )
        arguments = ["--queries", name, "--encoding", "windows-1252", "--format", "jsonl"]
        lines = indexed("query", *arguments, typed=typed).stdout.splitlines()
        assert json.loads(lines[1])["query"] == "Le café est situé près de la forêt"

    def test_truncated_query_is_reported(self, run, tmp_path, minilm):
        with Index.create(tmp_path / "indexes" / "one", minilm) as index:
            index.add([Document("a", "red apple")])
        result = run("query", "word " * 254 + "end", "-k", "1")
        assert result.stdout.splitlines()[1].endswith("  a")
        assert result.stderr == (
            "the query has 255 tokens; minilm reads only the first 254, without: 'end'\n"
        )

    def test_queries_with_a_byte_order_mark(self, indexed, tmp_path):
        (tmp_path / "q.txt").write_text("un café\nb\n", "utf-16")
        lines = indexed("query", "--queries", "q.txt", "--format", "jsonl").stdout.splitlines()
        assert [json.loads(line)["query"] for line in lines] == ["un café", "b"]

    def test_blank_lines_count_in_line_numbers(self, indexed, tmp_path):
        (tmp_path / "q.txt").write_text("a\n\n" + "x" * ((1 << 20) + 1))
        result = indexed("query", "--queries", "q.txt", code=1)
        assert "q.txt:3: the line is longer than 1 MiB" in result.stderr


class TestRanking:
    """The ranking options of `query`; their effect is tested in tests/search."""

    def hits(self, run, *arguments):
        line = json.loads(run("query", *arguments, "--format", "jsonl").stdout)
        return [hit["id"] for hit in line["hits"]]

    def test_explain_as_a_table(self, indexed):
        table = indexed("query", "a train at night", "--mode", "hybrid", "--explain").stdout
        lines = table.splitlines()
        assert lines[0].split() == ["score", "cosine", "bm25", "title"]
        assert lines[3] == "   rank 1 by meaning, 1 by words; shared words: a, train, at, night"
        stages = [line.split()[0] for line in lines if " ms" in line]
        assert stages == ["encode", "vectors", "words", "fetch", "explain"]
        assert "exact over 3 vectors" in table

    def test_nearest_sentence_is_printed_if_there_is_no_bold(self, run, tmp_path):
        far = "Nothing here belongs to it. " * 12
        (tmp_path / "two.csv").write_text(f"id,text\n1,{far}A train at night.\n")
        run("index", "two.csv", "--encoder", "hashing")
        found = run("query", "a train at night", "--explain").stdout
        assert "nearest sentence: A train at night." in " ".join(found.split())
        (tmp_path / "two.csv").write_text("id,text\n1,A train at night.\n")
        run("index", "two.csv", "--encoder", "hashing")
        assert "nearest sentence" not in run("query", "a train at night", "--explain").stdout

    def test_explain_as_json(self, indexed):
        options = ["--mode", "hybrid", "--explain", "--format", "jsonl"]
        line = json.loads(indexed("query", "night train", *options).stdout)
        (first, *_) = line["hits"]
        start, end = first["explanation"]["sentence"]
        assert first["text"][start:end] == "A train crosses the mountains at night."
        assert set(first["scores"]) == {"cosine", "bm25"}
        assert [stage["name"] for stage in line["stages"]][:2] == ["encode", "vectors"]

    def test_excluded_words_and_phrases(self, indexed):
        assert sorted(self.hits(indexed, "the -dawn", "--mode", "bm25")) == ["a", "c"]
        assert self.hits(indexed, '"at night" train', "--mode", "hybrid") == ["a"]

    def test_like_also_and_unlike(self, indexed):
        assert sorted(self.hits(indexed, "--like", "a")) == ["b", "c"]
        assert "a" not in self.hits(indexed, "train", "--like", "a")
        assert self.hits(indexed, "boats", "--also", "the bay", "-k", "1") == ["c"]
        assert self.hits(indexed, "the", "--unlike", "c") == self.hits(
            indexed, "the", "--where", "id != 'c'", "--unlike", "c"
        )
        assert "no document 'x'" in error_of(indexed("query", "--like", "x", code=1))

    def test_min_score_and_mmr(self, indexed):
        assert self.hits(indexed, "train at night", "--min-score", "0.3") == ["a"]
        assert len(self.hits(indexed, "the", "--mmr", "0.5", "--fold-duplicates")) == 3

    def test_folded_duplicates_are_listed(self, run, tmp_path):
        (tmp_path / "twice.csv").write_text("id,text\none,A train.\ntwo,a Train\n")
        run("index", "twice.csv", "--encoder", "hashing")
        table = run("query", "train", "--fold-duplicates").stdout
        assert table.splitlines()[2:] == ["   A train.", "   duplicates: two"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--explain", "--format", "csv"], "--explain needs --format table or jsonl"),
            (["--mmr", "2"], "mmr must be a number from 0 to 1, not 2.0"),
            (["--dense-weight", "-1"], "dense_weight must be a number from 0 to 1"),
            (["--per-document", "0"], "per_document must be at least 1"),
            (["--rerank-depth", "0"], "rerank_depth must be at least 1"),
            (["--like", "a", "--mode", "bm25"], "like and unlike compare vectors"),
        ],
    )
    def test_mistakes(self, indexed, arguments, message):
        assert message in error_of(indexed("query", "train", *arguments, code=1))

    def test_invalid_time(self, indexed):
        result = indexed("query", "train", "--rerank-budget", "soon", code=2)
        assert "'soon' is not a time such as 300ms, 2s or 30m" in result.stderr


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


class TestDefaultIndex:
    def test_no_index(self, run):
        assert "no index under indexes/" in error_of(run("query", "x", code=1))

    def test_several_indexes(self, indexed):
        indexed("index", "corpus.csv", "--index", "indexes/two", "--encoder", "hashing")
        assert "indexes/corpus, indexes/two" in error_of(indexed("query", "x", code=1))
        assert "Train" in indexed("query", "train", "--index", "indexes/two").stdout

    def test_from_the_environment(self, indexed, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_INDEX", "elsewhere")
        assert "no index at elsewhere" in error_of(indexed("query", "x", code=1))


class TestInfo:
    def test_json(self, indexed):
        info = json.loads(indexed("info", "--format", "json").stdout)
        assert (info["documents"], info["chunks"]) == (3, 3)
        assert info["fields"] == ["genres", "year"]
        assert info["field_kinds"] == {
            "genres": {"list of text": 2, "list": 1},
            "year": {"number": 3},
        }
        assert info["examples"] == {"genres": "Drama", "year": 1951}
        (space,) = info["spaces"]
        assert (space["encoder"], space["dimension"]) == ("hashing", 256)
        assert space["fingerprint"] == "hashing-1-256"
        assert set(info["files"]) == set(info["sizes"]) >= {"index.sqlite", "hashing-1.faiss"}

    def test_text(self, indexed):
        output = indexed("info").stdout
        assert "space hashing: encoder hashing, dimension 256" in output
        genres = "field genres: list of text (2 documents), list (1), such as 'Drama'\n"
        assert genres + "field year: number (3 documents), such as 1951\n" in output


class TestDelete:
    def test_by_id_and_by_filter(self, indexed):
        nothing = indexed("delete", "--where", "id = 7")
        assert nothing.stdout == "0 documents deleted, 3 left\n"
        assert "where: id holds text; reading 7 as '7'\n" in nothing.stderr
        assert "where: no document matches" in nothing.stderr
        assert indexed("delete", "a").stdout == "1 document deleted, 2 left\n"
        assert indexed("delete", "--where", "year > 2000").stdout == "1 document deleted, 1 left\n"

    def test_mistakes(self, indexed):
        assert "no document 'z'" in error_of(indexed("delete", "a", "z", code=1))
        assert "nothing to delete" in error_of(indexed("delete", code=1))
        assert "documents: 3" in indexed("info").stdout


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

    def test_mistakes(self, indexed):
        assert "the only space" in error_of(indexed("index", "--drop-space", "hashing", code=1))
        assert "no space 'x'" in error_of(indexed("index", "--drop-space", "x", code=1))
        both = indexed("index", "corpus.csv", "--add-space", "hashing:16", code=1)
        assert "take no corpus" in error_of(both)


class TestMaintenance:
    def test_verify_and_repair(self, indexed, tmp_path):
        assert indexed("verify").stdout == "indexes/corpus: no faults\n"
        snapshot = tmp_path / "indexes" / "corpus" / "hashing-1.faiss"
        snapshot.write_bytes(bytes(snapshot.stat().st_size))
        output = indexed("verify", code=1).stdout
        assert output == (
            "hashing-1.faiss is damaged (its SHA-256 is not the recorded one); "
            "to fix it: semsearch verify --repair\n"
        )
        assert indexed("verify", "--repair").stdout.endswith(
            "repaired; 0 faults left\nindexes/corpus: no faults\n"
        )

    def test_missing_snapshot_is_reported_and_bypassed(self, indexed, tmp_path):
        (tmp_path / "indexes" / "corpus" / "hashing-1.faiss").unlink()
        result = indexed("query", "train", "-k", "1")
        assert "Night Train" in result.stdout
        assert "is missing; searching the vectors in SQLite instead" in result.stderr

    def test_compact(self, indexed, tmp_path):
        indexed("delete", "a")
        assert "bytes before" in indexed("compact").stdout
        folder = tmp_path / "indexes" / "corpus"
        assert not any(b"mountains" in file.read_bytes() for file in folder.iterdir())

    def test_second_writer_is_rejected(self, indexed):
        with Index.open("indexes/corpus") as index, index.writer():
            for arguments in (["index", "corpus.csv"], ["delete", "a"], ["compact"], ["verify"]):
                error = error_of(indexed(*arguments, code=1))
                assert f"is being written by process {os.getpid()} since" in error


class TestHelp:
    @pytest.mark.parametrize("name", list(COMMANDS))
    def test_every_command_has_examples(self, run, name):
        assert f"\n  semsearch {name}" in run(name, "--help").output

    def test_overview_and_version(self, run):
        assert "semsearch index corpus.csv" in run("--help").output
        assert run("--version").output.startswith("semsearch 0.")

    def test_unknown_command(self, run):
        assert "No such command 'serach'" in run("serach", code=2).stderr


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
