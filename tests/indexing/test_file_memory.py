"""Unchanged files of a folder are not opened again; moved files keep their vectors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.corpus import Corpus, folder

OLD = 1_600_000_000


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A folder of three files with old time stamps."""
    monkeypatch.chdir(tmp_path)
    files = {
        "a.txt": "The cat sleeps.",
        "b/page.html": "<title>T</title>One.<h1>H</h1>Two.",
        "c.md": "# Three\n",
    }
    for name, text in files.items():
        write(name, text)
    return Path("docs")


def write(name, text, modified=OLD):
    path = Path("docs", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (modified, modified))


@pytest.fixture
def index(docs):
    with Index.create("index", ["hashing"]) as index:
        yield index


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that were opened for reading."""
    names = []
    original = folder.open_source

    def open_source(path, progress):
        names.append(path.name)
        return original(path, progress)

    monkeypatch.setattr(folder, "open_source", open_source)
    return names


def sync(index, **options):
    messages = []
    corpus = Corpus("docs", notify=messages.append, on_bad_row=lambda error: None, **options)
    with index.writer() as writer:
        summary = writer.sync(corpus, allow_removals=True)
    return summary, messages[-1]


def counts(summary):
    return summary.added, summary.changed, summary.unchanged, summary.removed


class TestUnchanged:
    def test_are_not_opened(self, index, opened):
        assert counts(sync(index)[0]) == (4, 0, 0, 0)
        assert opened == ["a.txt", "page.html", "c.md"]
        opened.clear()
        summary, message = sync(index)
        assert counts(summary) == (0, 0, 4, 0)
        assert opened == []
        assert "3 files unchanged" in message
        assert len(index) == 4

    def test_a_fresh_time_stamp_is_not_trusted(self, index, opened):
        """A file can change twice within the resolution of the clock, and keep its length."""
        Path("docs/a.txt").write_text("The cat sleeps.")
        now = Path("docs/a.txt").stat().st_mtime_ns
        sync(index)
        Path("docs/a.txt").write_text("The dog sleeps.")
        os.utime("docs/a.txt", ns=(now, now))
        assert counts(sync(index)[0]) == (0, 1, 3, 0)

    def test_changed_new_and_deleted_files(self, index, opened):
        sync(index)
        opened.clear()
        write("a.txt", "The cat sleeps", OLD + 1)
        os.utime("docs/b/page.html", (OLD + 9, OLD + 9))
        write("d.txt", "New.")
        Path("docs/c.md").unlink()
        assert counts(sync(index)[0]) == (1, 1, 2, 1)
        assert opened == ["a.txt", "page.html", "d.txt"]
        opened.clear()
        assert counts(sync(index)[0]) == (0, 0, 4, 0)
        assert opened == []
        sync(index, encoding="cp1252")  # reads all files again
        assert len(opened) == 3


class TestIndexTakesPrecedence:
    @pytest.mark.parametrize(
        ("change", "file"),
        [
            (lambda index: index.delete(["a.txt"]), "a.txt"),
            (lambda index: index.delete(["b/page.html#section=2"]), "page.html"),
            (lambda index: index.add([Document("a.txt", "The cat.", "a", {"n": 1})]), "a.txt"),
        ],
    )
    def test_a_document_that_was_changed_is_read_again(self, index, opened, change, file):
        sync(index)
        before = {document.id: document for document in index}
        change(index)
        opened.clear()
        sync(index)
        assert opened == [file]
        assert {document.id: document for document in index} == before

    def test_documents_of_an_unreadable_file_stay(self, index):
        sync(index)
        Path("docs/b/page.html").write_bytes(b"<p>caf\xe9")
        Path("docs/c.md").unlink()
        assert counts(sync(index)[0]) == (0, 0, 1, 1)
        names = ["a.txt", "b/page.html#section=1", "b/page.html#section=2"]
        assert sorted(document.id for document in index) == names


class TestFileMemory:
    FILE = Path("index/files.sqlite")

    @pytest.mark.parametrize("content", [None, b"nonsense" * 100])
    def test_may_be_missing_or_damaged(self, index, opened, content):
        sync(index)
        self.FILE.unlink()
        if content is not None:
            self.FILE.write_bytes(content)
        opened.clear()
        assert counts(sync(index)[0]) == (0, 0, 4, 0)
        assert len(opened) == 3
        sync(index)  # a damaged one was deleted by the first run
        opened.clear()
        sync(index)
        assert opened == []

    def test_is_deleted_by_compact(self, index):
        sync(index)
        with index.writer() as writer:
            writer.delete(["a.txt"])
            writer.compact()
        assert not self.FILE.exists()

    def test_an_interrupted_run_remembers_nothing_wrong(self, index, opened):
        corpus = Corpus("docs")

        def broken():
            yield from corpus
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), index.writer() as writer:
            writer.upsert(broken())
        assert sync(index)[0].documents == len(index) == 4
        assert len(opened) == 6


def test_files_keep_their_vectors(index):
    assert sync(index)[0].encoded == 4
    Path("docs/new").mkdir()
    Path("docs/a.txt").rename("docs/new/z.txt")
    Path("docs/b/page.html").rename("docs/page.html")
    summary, _ = sync(index)
    assert counts(summary) == (3, 0, 1, 3)
    assert summary.encoded == 0


@pytest.mark.skipif(sys.platform != "linux", reason="file names can be any bytes on Linux only")
def test_undecodable_file_names(tmp_path):
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    (folder / "b\udcff.txt").write_text("One.")
    (folder / "c\udcff.csv").write_text("id,text\nc,Two.\n")
    (folder / "d\udcff.jsonl").write_text('{"id": "d", "text": "Three."}\n{"id": "d", "text": ""}')
    bad = []
    with Index.create(tmp_path / "pets", ["hashing"]) as index:
        for name in ("", "b\udcff.txt", "c\udcff.csv", "d\udcff.jsonl"):
            index.add(Corpus(folder / name, on_bad_row=bad.append))
        ids = {hit.document_id for hit in index.search("x")}
    place = str(tmp_path / "caf\\udce9")
    rows = {"c\\udcff.csv#id=c", "d\\udcff.jsonl#id=d"}  # from the folder's tables
    assert ids == {"b\\udcff.txt", f"{place}/b\\udcff.txt", "c", "d"} | rows
    assert [error.source for error in bad] == [f"{place}/d\\udcff.jsonl:2"] * 2  # folder, file
