"""Folders of mixed files: what is read, what is left out and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import ArgumentError, CorpusError
from semsearch.records import Document


def read(name, **options):
    said = []
    return list(Corpus(name, notify=said.append, **options)), said


def ids(*paths, **options):
    return [document.id for document in Corpus(paths, **options)]


@pytest.fixture
def mixed(write, tmp_path):
    write("docs/a.txt", "One.")
    write("docs/b.md", "# Two\n")
    write("docs/deep/page.html", "<title>T</title><p>Three.</p><h1>H</h1>Four.")
    write("docs/deep/rows.csv", "id,text\n1,x\n")
    for name in ("x.png", "y.png", "z.zip", "deep/k", "w.rtf", ".hidden.txt", ".git/a.txt"):
        write(f"docs/{name}", "x")
    (tmp_path / "docs" / "loop").symlink_to(tmp_path / "docs")
    return "docs"


def test_what_is_read_and_what_is_not(mixed):
    documents, said = read(mixed)
    where = {"file": "deep/page.html"}
    assert documents == [
        Document("a.txt", "One.", "a"),
        Document("b.md", "# Two\n", "Two"),
        Document("deep/page.html#section=1", "Three.", "T", where),
        Document("deep/page.html#section=2", "H\nFour.", "T: H", {**where, "section": "H"}),
    ]
    assert documents[3].source == f"{Path('docs/deep/page.html')}, section 2"
    assert said == [
        "docs: 3 files (1 html, 1 md, 1 txt); left out: 5 of formats that are not read "
        "(deep/k, w.rtf, x.png, …), 1 linked folders (loop), "
        "1 tables, which are indexed when they are named (deep/rows.csv)"
    ]


def test_without_the_extra(mixed, monkeypatch):
    monkeypatch.setattr("semsearch.corpus.converters.find_spec", lambda name: None)
    documents, said = read(mixed)
    assert [document.id for document in documents] == ["a.txt", "b.md"]
    assert (
        "1 that need the extra 'files': pip install 'semsearch[files]' (deep/page.html)" in said[0]
    )


class TestExclusions:
    def test_by_patterns_as_of_git(self, mixed, write):
        assert ids(mixed, exclude=["deep/"]) == ["a.txt", "b.md"]
        assert ids(mixed, exclude=["*.txt", "*.md", "!a.txt"]) == [
            "a.txt",
            "deep/page.html#section=1",
            "deep/page.html#section=2",
        ]
        write("docs/deep/a.txt", "Again.")
        assert "deep/a.txt" in ids(mixed, exclude=["/a.txt"])
        said = read(mixed, exclude=["deep", "*.png"])[1]
        assert "3 excluded (deep, x.png, y.png)" in said[0]

    def test_by_a_file(self, mixed, write):
        write("docs/.semsearchignore", "# no drafts\n*.html\n\nb.*\n")
        assert ids(mixed) == ["a.txt"]
        assert ids(mixed, exclude=["!b.md"]) == ["a.txt", "b.md"]

    def test_all(self, mixed):
        with pytest.raises(
            CorpusError, match=r"^docs has no documents to read: 0 files; left out:"
        ):
            ids(mixed, exclude=["*"])

    def test_patterns_that_are_none(self, mixed):
        with pytest.raises(ArgumentError, match=r"^'!' is no pattern as in \.gitignore$"):
            ids(mixed, exclude=["!"])
        with pytest.raises(ArgumentError, match="exclude"):
            Corpus(mixed, exclude="*.txt")


def test_names_with_the_sign_of_a_part(write):
    write("docs/a.html", "<p>One.")
    write("docs/a.html#section=1.txt", "Two.")
    assert ids("docs") == ["a.html#section=1", "a.html%23section=1.txt"]


def test_a_broken_document_is_one_bad_row(write):
    write("docs/a.txt", "One.")
    write("docs/b.pdf", "%PDF-1.7\nnothing")
    write("docs/c.docx", b"PK\x03\x04 broken")
    bad = []
    assert ids("docs", on_bad_row=bad.append) == ["a.txt"]
    assert [error.source for error in bad] == [
        str(Path("docs", name)) for name in ("b.pdf", "c.docx")
    ]
    assert [error.file for error in bad] == ["b.pdf", "c.docx"]
    with pytest.raises(CorpusError, match=r"b\.pdf: cannot be read as PDF: "):
        ids("docs")
