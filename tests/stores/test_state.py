"""What a local store reads: beside a writer, of repeated texts, of damaged vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.sql.compiler import SQLCompiler

from semsearch import Document, Index
from semsearch.index.copying import copy_index
from semsearch.stores.local import state


@pytest.fixture
def path(tmp_path):
    with Index.create(tmp_path / "x", "hashing:32") as index:
        index.add(Document(str(number), f"text {number}") for number in range(60))
    return tmp_path / "x"


def test_indexes_share_their_compiled_statements(path, tmp_path, monkeypatch):
    """What was executed on one index is not compiled again for another, or when it is reopened."""

    def use(place):
        with Index.open(place) as index:
            assert index.search("text 7", k=1, where="id != '8'", mode="hybrid")
            index.add([Document("1", "another text")])
            index.add([Document("1", "text 1")])

    compiled = []
    real = SQLCompiler.__init__

    def counted(compiler, dialect, statement, *arguments, **options):
        compiled.append(statement)
        real(compiler, dialect, statement, *arguments, **options)

    copy_index(path, tmp_path / "copy")
    use(path)
    monkeypatch.setattr(SQLCompiler, "__init__", counted)
    for place in (path, tmp_path / "copy"):
        use(place)
    assert not compiled


def test_repeated_texts_are_encoded_once_and_read_once(tmp_path, monkeypatch):
    """However often a text is stored, one of its vectors is read."""
    with Index.create(tmp_path / "x", "hashing:32") as index:
        index.add(Document(str(number), "the same notice") for number in range(500))
        index.add([Document("other", "another notice")])
        read = []

        def counted(space, rows):
            read.append(len(rows))
            return real(space, rows)

        real = state.damaged
        monkeypatch.setattr(state, "damaged", counted)
        encoded = index.add([Document("again", "the same notice"), Document("new", "a new notice")])
        assert (encoded.added, read) == (2, [1])
        assert len(index.search("the same notice", 600)) == 503


def test_a_snapshot_that_cannot_be_deleted_is_left_to_the_next_writer(path, monkeypatch):
    """Windows deletes no file that a reader maps."""

    def refuse(file, missing_ok=False):
        if file.suffix == ".faiss":
            raise PermissionError(13, "Access is denied", str(file))
        real(file, missing_ok=missing_ok)

    real = Path.unlink
    with Index.open(path) as index:
        monkeypatch.setattr(Path, "unlink", refuse)
        for number in range(3):
            index.add(Document(f"{number} {n}", f"text {number} {n}") for n in range(50))
        left = len(list(path.glob("*.faiss")))
        monkeypatch.undo()
        index.add([Document("last", "last")])
        assert len(list(path.glob("*.faiss"))) < left
