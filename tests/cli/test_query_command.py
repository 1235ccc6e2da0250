"""``semsearch query``: output, errors and exit status."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pandas
import pytest

from semsearch import Document, Index
from tests.cli.conftest import code_of, rows


def ids(run, *arguments):
    line = json.loads(run("query", *arguments, "--format", "jsonl").stdout)
    return [hit["id"] for hit in line["hits"]]


@pytest.mark.parametrize("columns", ["60", "200", "x", None])
def test_passages_fit_the_width(run, tmp_path, monkeypatch, columns):
    """The width is COLUMNS, or 120 if it is unset or invalid, but at most 100."""
    words = "word " * 40
    with Index.create(tmp_path / "indexes" / "one", ["hashing"]) as index:
        index.add([Document("a", words, "A title of many words " * 8)])
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    lines = run("query", "word").stdout.splitlines()
    width = 60 if columns == "60" else 100
    assert lines[-2] == "   " + ("word " * ((width - 2) // 5)).rstrip()
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    (number,) = [place for place, line in enumerate(lines) if line.startswith("1")]
    title = [line for line in lines[number:] if "word " not in line]
    assert all(line.startswith("          ") for line in title[1:])


def test_metadata_field_with_the_name_of_a_built_in_one(run, tmp_path):
    with Index.create(tmp_path / "indexes" / "x", ["hashing"]) as index:
        own = {"id": "mine", "title": "also mine", "metadata.id": "deep"}
        index.add([Document("a", "train", "Title", own)])
    row = rows(run("query", "train", "--format", "csv"))[0]
    assert (row["id"], row["metadata.id"], row["metadata.metadata.id"]) == ("a", "mine", "deep")
    assert (row["title"], row["metadata.title"]) == ("Title", "also mine")
    shown = ["--show", "id", "--show", "metadata.id", "--show", "metadata.metadata.id"]
    output = run("query", "train", *shown).stdout.split()
    assert [output.count(cell) for cell in ("a", "mine", "deep")] == [1, 1, 1]


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_hits_are_written_with_the_columns_of_their_table(run, tmp_path, ending):
    """Those that it had, in its order and with its names; CSV tells Excel its encoding."""
    own = ["Jahr", "Größe", "Kommentar", "score"]
    table = f"{','.join(own)}\n1999,L,Der Bäcker knetet Teig.,7\n2004,,Zwei Boote fahren.,\n"
    (tmp_path / "umfrage.csv").write_text(table, "utf-8")
    run("index", "umfrage.csv", "--text-column", "Kommentar", "--encoder", "hashing")
    query, name = ["query", "Boote fahren", "-k", 2], f"hits.{ending}"
    assert run(*query, "--output", name).stdout == f"{name}: 2 hits\n"
    reader = {"csv": pandas.read_csv, "xlsx": pandas.read_excel, "parquet": pandas.read_parquet}
    found = reader[ending](tmp_path / name)
    assert list(found.columns) == ["query", "rank", "score_2", "passage", *own]
    first = found.iloc[0][["query", "rank", "Jahr", "Kommentar", "passage"]]
    assert first.tolist() == ["Boote fahren", 1, 2004, "Zwei Boote fahren.", "Zwei Boote fahren."]
    assert found["Größe"].isna().tolist() == [True, False]
    assert found.score_2.is_monotonic_decreasing
    assert (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf") == (ending == "csv")
    for wrong in (["--output", name], ["--output", "x.txt"], ["--output", "x.csv", "--explain"]):
        assert code_of(run("query", "x", *wrong, code=1)) == "invalid-argument"


def test_printed_hits_have_the_columns_of_a_file_and_parts_of_scores(indexed, tmp_path):
    indexed("query", "boats race", "--output", "hits.csv")
    with (tmp_path / "hits.csv").open(encoding="utf-8-sig", newline="") as file:
        written = list(csv.DictReader(file))
    printed = rows(indexed("query", "boats race", "--format", "csv"))
    own = ["id", "title", "text", "year", "genres"]
    assert list(printed[0]) == [
        *("query", "rank", "score", "cosine", "bm25", "reranked", "passage"),
        *own,
    ]
    assert [{name: row[name] for name in written[0]} for row in printed] == written


def test_hits_that_a_file_cannot_hold_as_they_are_are_reported(run, tmp_path):
    with Index.create(tmp_path / "indexes" / "x", "hashing") as index:
        index.add([Document("a", "train " * 6_000, metadata={"n": {"m": 1}})])
    assert "1 text cut" in run("query", "train", "--output", "hits.xlsx").stderr
    assert "as JSON text" in run("query", "train", "--output", "hits.parquet").stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [("\ufeffa\n \n\nb", ["a", "b"]), ("a\n" + 12 * "\n", ["a"]), ("\ufeff\n\n", [])],
)
def test_blank_lines_of_a_file_are_skipped(indexed, tmp_path, content, expected):
    (tmp_path / "q.txt").write_text(content, "utf-8")
    lines = indexed("query", "--queries", "q.txt", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "id,query\n1,sleep well\n2,coffee\n"),
        ("q.csv", "sleep well\ncoffee\n"),
        ("q.jsonl", '{"_id": "1", "text": "sleep well"}\n{"_id": "2", "text": "coffee"}\n'),
        ("q.txt", "sleep well\ncoffee\n"),
    ],
)
def test_queries_are_read_from_tables(indexed, tmp_path, name, content):
    (tmp_path / name).write_text(content, "utf-8")
    lines = indexed("query", "--queries", name, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["sleep well", "coffee"]


def test_tables_without_queries(indexed, tmp_path):
    (tmp_path / "q.csv").write_text("id,year\n1,1990\n", "utf-8")
    failed = indexed("query", "--queries", "q.csv", code=1)
    assert code_of(failed) == "column-not-found"


@pytest.mark.parametrize("format_name", ["table", "jsonl"])
def test_each_query_of_a_pipe_is_answered_when_it_comes(indexed, format_name):
    command = [sys.executable, "-m", "semsearch", "query", "--queries", "-", "-k", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--format", format_name], **pipes) as process:
        for query, title in [("train", "Night Train"), ("dough", "Bread")]:
            process.stdin.write(f"{query}\n")
            process.stdin.flush()
            assert any(title in line for line in process.stdout)
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0


def test_explain(indexed):
    options = ["--mode", "hybrid", "--explain", "--format", "jsonl"]
    line = json.loads(indexed("query", "night train", *options).stdout)
    (first, *_) = line["hits"]
    start, end = first["explanation"]["sentence"]
    assert first["text"][start:end] == "A train crosses the mountains at night."
    assert set(first["scores"]) == {"cosine", "bm25"}
    assert [stage["name"] for stage in line["stages"]][:2] == ["encode", "vectors"]


def test_options_reach_the_search(indexed):
    """Their effects are tested in tests/search."""
    assert ids(indexed, "x", "--where", "year >= 1990 and genres = 'Drama'") == ["b"]
    assert ids(indexed, "train", "--mode", "hybrid", "-k", "1") == ["a"]
    assert sorted(ids(indexed, "the -dawn", "--mode", "bm25")) == ["a", "c"]
    assert ids(indexed, "train", "--require", "at night") == ["a"]
    assert sorted(ids(indexed, "--like", "a")) == ["b", "c"]
    assert ids(indexed, "train at night", "--min-score", "0.3") == ["a"]
    assert ids(indexed, "boats", "the bay", "-k", "1") == ["c"]
    assert "c" not in ids(indexed, "the", "--unlike", "c")


def test_folded_duplicates_are_listed(run, tmp_path):
    (tmp_path / "twice.csv").write_text("id,text\none,A train.\ntwo,a Train\n")
    run("index", "twice.csv", "--encoder", "hashing")
    table = run("query", "train", "--collapse-duplicates").stdout
    assert table.splitlines()[2:] == ["   A train.", "   duplicates: two"]
