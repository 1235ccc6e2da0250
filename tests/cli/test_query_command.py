"""``semsearch query``: output, errors and exit status."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest

from semsearch import Document, Index
from tests.cli.conftest import error_of


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
            ("a\n\nb", ["a", "b"], "q.txt: 1 blank line skipped (line 2)\n"),
            ("\ufeffa\n \n\nb", ["a", "b"], "q.txt: 2 blank lines skipped (lines 2, 3)\n"),
            (
                "a\n" + 12 * "\n",
                ["a"],
                "q.txt: 12 blank lines skipped (lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …)\n",
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

    def test_queries_before_an_unusable_one_are_answered(self, indexed, tmp_path):
        unusable = "night " * 10_001
        (tmp_path / "q.txt").write_text(f"train\n\nbread\n{unusable}\nnight\n")
        arguments = ["--mode", "bm25", "--format", "jsonl", "--queries"]
        result = indexed("query", *arguments, "q.txt", code=1)
        answered = [json.loads(line)["query"] for line in result.stdout.splitlines()]
        assert answered == ["train", "bread"]
        assert "Error: q.txt:4: the query has 10,001 words" in result.stderr
        result = indexed("query", *arguments, "-", typed=unusable, code=1)
        assert error_of(result).startswith("stdin:1: the query has 10,001 words")

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

    def test_phrases_and_excluded_words(self, indexed):
        assert sorted(self.hits(indexed, "the -dawn", "--mode", "bm25")) == ["a", "c"]
        assert len(self.hits(indexed, '"at night" train', "--mode", "hybrid")) == 3
        assert self.hits(indexed, "train", "--require", "at night") == ["a"]
        assert self.hits(indexed, "x", "--require", "at night", "--require", "dawn") == []
        result = indexed("query", '"at night" -dawn', "--mode", "bm25")
        (line,) = result.stderr.splitlines()
        assert "'at night' rank higher" in line
        assert "'dawn' are excluded" in line

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
            (["--show", "year", "--format", "jsonl"], "--show needs --format table"),
            (["--mmr", "2"], "mmr must be a number from 0 to 1, not 2.0"),
            (
                ["--mode", "hybrid", "--dense-weight", "-1"],
                "dense_weight must be a number from 0 to 1",
            ),
            (["--per-document", "0"], "per_document must be at least 1"),
            (["--fusion", "rrf"], "--fusion needs --mode hybrid"),
            (["--dense-weight", "0.3", "--mode", "bm25"], "--dense-weight needs --mode hybrid"),
            (["--rerank-depth", "10"], "--rerank-depth needs --rerank MODEL"),
            (["--rerank-budget", "2s"], "--rerank-budget needs --rerank MODEL"),
            (["--like", "a", "--mode", "bm25"], "like and unlike compare vectors"),
        ],
    )
    def test_mistakes(self, indexed, arguments, message):
        assert message in error_of(indexed("query", "train", *arguments, code=1))

    def test_invalid_time(self, indexed):
        result = indexed("query", "train", "--rerank-budget", "soon", code=2)
        assert "'soon' is not a time such as 300ms, 2s or 30m" in result.stderr


def test_prompts_do_not_enter_redirected_output(indexed):
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "semsearch", "query", "--format", "jsonl"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(ours, b"train\n\x04")
        output, prompts = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert json.loads(output)["query"] == "train"
    assert prompts == "query> query> \n"
