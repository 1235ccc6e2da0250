"""Folders of mixed files: what is read, what is left out and why."""

from __future__ import annotations

import gzip
import os
import re
import time
from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, BadRowError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read


def ids(*paths, **options):
    return [document.id for document in Corpus(paths, **options)]


@pytest.fixture
def mixed(write, tmp_path):
    write("docs/a.txt", "One,\r\ntwo.")
    write("docs/b.md", "# Two\n")
    write("docs/deep/page.html", "<title>T</title><p>Three.</p><h1>H</h1>Four.")
    write("docs/deep/rows.csv", "id,text\n1,x\n")
    hidden = (".hidden.txt", ".git/a.txt", "~$a.docx")
    for name in ("x.png", "y.png", "z.zip", "deep/k", "w.rtf", *hidden):
        write(f"docs/{name}", "x")
    (tmp_path / "docs" / "loop").symlink_to(tmp_path / "docs")
    return "docs"


def test_supported_files_are_read_and_others_reported(mixed):
    documents, _, notices = read(mixed)
    where = {"file": "deep/page.html"}
    assert documents == [
        Document("a.txt", "One,\ntwo.", "a"),
        Document("b.md", "# Two\n", "Two"),
        Document("deep/page.html#section=1", "Three.", "T", where),
        Document("deep/page.html#section=2", "H\nFour.", "T: H", {**where, "section": "H"}),
        Document("deep/rows.csv#id=1", "x", "rows, 1", {"file": "deep/rows.csv"}),
    ]
    assert documents[3].source == f"{Path('docs/deep/page.html')}, section 2"
    assert notices == [
        "docs: 4 files (1 txt, 1 md, 1 html, 1 csv); left out: 5 in unsupported formats "
        "(deep/k, w.rtf, x.png, …), 1 linked (loop)",
        f"{Path('docs/deep/rows.csv')}: text from 'text', id from 'id'",
    ]


def test_without_the_extra(mixed, monkeypatch):
    monkeypatch.setattr("semsearch.corpus.conversion.find_spec", lambda name: None)
    documents, _, notices = read(mixed)
    assert [document.id for document in documents] == ["a.txt", "b.md", "deep/rows.csv#id=1"]
    assert re.search(r"1 that need the extra 'files': .* \(deep/page.html\)", notices[0])


def test_a_folder_and_a_file(mixed, write):
    write("last.MD.gz", "Last.", packed=True)
    corpus = Corpus([mixed, "last.MD.gz"], exclude=["deep", "a.txt"])
    documents = [Document("b.md", "# Two\n", "Two"), Document("last.MD.gz", "Last.", "last")]
    assert list(corpus) == documents
    assert corpus.fraction_read == 1.0


def test_unchanged_files(write, tmp_path, monkeypatch):
    """A time stamp of the last three seconds is not trusted; the options must be the same."""
    now = time.time_ns()
    monkeypatch.setattr("time.time_ns", lambda: now)
    ages = {"old": 3_000_000_001, "new": 3_000_000_000, "future": -3_000_000_001}
    for name, age in ages.items():
        write(f"docs/{name}.txt", f"{name}.")
        os.utime(tmp_path / "docs" / f"{name}.txt", ns=(now, now - age))
    write("docs/bad.jsonl", '{"text": "x"}\n{"text": ""}\n')
    os.utime(tmp_path / "docs" / "bad.jsonl", (0, 0))

    def read_again(before, **options):
        corpus = iter(Corpus("docs", on_bad_row=lambda error: None, **options))
        corpus.files.known = before.get
        return [document.id for document in corpus], corpus.files.to_remember

    found, remembered = read_again({})
    assert found == ["bad.jsonl#row=1", "future.txt", "new.txt", "old.txt"]
    trusted = {name: state.modified > 0 for name, state in remembered.items()}
    assert trusted == {"future.txt": True, "old.txt": True, "new.txt": False}
    assert read_again(remembered)[0] == ["bad.jsonl#row=1", "new.txt"]
    assert read_again(remembered, encoding="utf-8")[0] == found


class TestExclusions:
    def test_gitignore_patterns(self, mixed, write):
        assert ids(mixed, exclude=["deep/"]) == ["a.txt", "b.md"]
        named = ids(mixed, exclude=["*.txt", "*.md", "*.html", "!a.txt"])
        assert named == ["a.txt", "deep/rows.csv#id=1"]
        write("docs/deep/a.txt", "Again.")
        assert "deep/a.txt" in ids(mixed, exclude=["/a.txt"])
        notices = read(mixed, exclude=["deep", "*.png"])[2]
        assert "3 excluded (deep, x.png, y.png)" in notices[0]

    def test_ignore_file(self, mixed, write):
        write("docs/.semsearchignore", "# no drafts\n*.html\n*.csv\n\nb.*\n")
        assert ids(mixed) == ["a.txt"]
        assert ids(mixed, exclude=["!b.md"]) == ["a.txt", "b.md"]

    def test_invalid_patterns_and_options(self, mixed):
        """Sheets and records are options of single files."""
        without_tables = {"exclude": ["*.csv"], "text_columns": "body"}
        for options in ({"exclude": ["*"]}, without_tables, {"sheet": "A"}, {"records": "a"}):
            with pytest.raises(CorpusError, match=r"^docs"):
                ids(mixed, **options)
        with pytest.raises(ArgumentError):
            ids(mixed, exclude=["!"])
        with pytest.raises(ArgumentError, match="exclude"):
            Corpus(mixed, exclude="*.txt")


class TestTables:
    """Rows of tables are read if their text column is unambiguous."""

    def test_rows_have_their_file_and_line_number(self, write):
        write("docs/a.csv", 'file,title,text,year\nx,One,"Two\nlines.",1995\ny,,Three.,\n')
        write("docs/b.jsonl", '{"id": "k", "text": "Four.", "row": 9}\n')
        write("docs/deep/c.json", '[{"text": "Five."}]')
        documents, _, notices = read("docs")
        first = {"file": "a.csv", "row": 2, "column.file": "x", "year": 1995}
        second = {"file": "a.csv", "row": 4, "column.file": "y"}  # the line number in an editor
        item = {"file": "deep/c.json", "row": 1}
        assert documents == [
            Document("a.csv#row=2", "Two\nlines.", "a, row 2: One", first),
            Document("a.csv#row=4", "Three.", "a, row 4", second),
            Document("b.jsonl#id=k", "Four.", "b, k", {"file": "b.jsonl", "column.row": 9}),
            Document("deep/c.json#row=1", "Five.", "c, row 1", item),
        ]
        assert notices[1].startswith(f"{Path('docs/a.csv')}: text from 'text', title from 'title'")

    def test_tables_without_a_clear_text_column_are_left_out(self, write):
        write("docs/a.csv", "name,age\nx,7\ny,8\n")
        write("docs/b.csv", "text\n" + "17\n" * 5)
        write("docs/empty.tsv", "")
        write("docs/package.json", '{"name": "x", "scripts": {"a": "b"}}\n')
        write("docs/theme.json", '[{"theme": "dark"}]')
        write("docs/z.txt", "Read.")
        documents, _, notices = read("docs")
        assert [document.id for document in documents] == ["z.txt"]
        left_out = "5 without a clear text column (a.csv, b.csv, empty.tsv, …)"
        assert notices[-1].startswith(f"docs: left out: {left_out}; ")
        named = ["a.csv#row=2", "a.csv#row=3", "package.json#row=1"]
        assert ids("docs", text_columns="name") == [*named, "z.txt"]
        named = [f"b.csv#row={n}" for n in range(2, 7)]
        assert ids("docs", text_columns="text") == [*named, "z.txt"]

    def test_bad_rows_and_broken_files(self, write):
        write("docs/a.jsonl", '{"text": "One."}\n{"text": [2]}\n{"text": "Three."}\n')
        write("docs/b.parquet", b"PAR1 nothing of the kind PAR1")
        packed = gzip.compress(b"id,text\n" + b"%d,x\n" * 9 % tuple(range(9)))
        write("docs/c.csv.gz", packed[:-9])
        write("docs/d.txt.gz", packed[:-9])
        write("docs/z.txt", "Last.")
        documents, bad, _ = read("docs")
        assert [one.id for one in documents] == ["a.jsonl#row=1", "a.jsonl#row=3", "z.txt"]
        named = ["a.jsonl", "b.parquet", "c.csv.gz", "d.txt.gz"]
        assert [error.document_id for error in bad] == named
        assert str(bad[2]).startswith(f"{Path('docs/c.csv.gz')}: damaged gzip data: ")
        with pytest.raises(BadRowError, match=r"a\.jsonl:2"):
            ids("docs")

    def test_ids_of_rows(self, write):
        """A row inserted at the top renames none; a column of repeated ids names none."""
        row = '{"id": "%s", "text": "%s"}\n'
        write("docs/a.jsonl", row % ("x", "") + row % ("y", "Two."))
        before, [error], _ = read("docs")
        assert ([one.id for one in before], error.document_id) == (["a.jsonl#id=y"], "a.jsonl#id=x")
        write("docs/a.jsonl", row % ("w", "New.") + row % ("x", "") + row % ("y", "Two."))
        assert read("docs")[0][1:] == before
        write("docs/a.jsonl", row % ("x", "One.") + row % ("x", "Two."))
        assert ids("docs") == ["a.jsonl#row=1", "a.jsonl#row=2"]
        assert ids("docs/a.jsonl", id_column="id") == ["x", "x"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
def test_broken_links_are_bad_rows_and_pipes_left_out(write, tmp_path):
    write("docs/a.txt", "One.")
    (tmp_path / "docs" / "b.txt").symlink_to("gone.txt")
    os.mkfifo(tmp_path / "docs" / "p.txt")
    documents, bad, notices = read("docs")
    assert [document.id for document in documents] == ["a.txt"]
    assert [str(error) for error in bad] == ["no such file: docs/b.txt"]
    assert notices == ["docs: 2 files (2 txt); left out: 1 not regular (p.txt)"]
    with pytest.raises(BadRowError):
        ids("docs")


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_links_out_of_the_folder_are_left_out(write, tmp_path):
    write("secret.txt", "A key.")
    write("notes/good.txt", "Good.")
    for name, target in (("out.txt", "secret.txt"), ("in.txt", "notes/good.txt")):
        (tmp_path / "notes" / name).symlink_to(tmp_path / target)
    documents, _, notices = read("notes")
    assert [one.id for one in documents] == ["good.txt", "in.txt"]
    assert notices[0] == "notes: 2 files (2 txt); left out: 1 linked (out.txt)"


def test_what_is_left_out_of_files_is_summed_up(write):
    write("all/a.csv", "id,text\n1,one\nid,text\n")
    write("all/b.csv", "id,text\n1,one\nid,text\n2,two\nid,text\n")
    write("all/empty.md", "---\ntitle: Only this\n---\n")
    _, bad, notices = read("all")
    assert bad == []
    assert notices[-1] == "all: 3 files read; left out: 3 repeated headers, 1 empty file"
