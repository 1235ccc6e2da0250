"""What a local store reads of repeated texts; files that cannot be deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch import Document, Index
from semsearch.errors import IndexBusyError
from semsearch.storage.sqlite import reader


def test_repeated_texts_are_encoded_once_and_read_once(tmp_path, monkeypatch):
    """However often a text is stored, one of its vectors is read."""
    with Index.create(tmp_path / "x", "hashing:32") as index:
        index.add(Document(str(number), "the same notice") for number in range(500))
        index.add([Document("other", "another notice")])
        read = []

        def counted(space, rows):
            read.append(len(rows))
            return real(space, rows)

        real = reader.stored_matrix
        monkeypatch.setattr(reader, "stored_matrix", counted)
        encoded = index.add([Document("again", "the same notice"), Document("new", "a new notice")])
        assert (encoded.added, read) == (2, [1])
        assert len(index.search("the same notice", 600)) == 503


def test_a_snapshot_that_cannot_be_deleted_is_left_to_the_next_writer(tmp_path, monkeypatch):
    """Windows deletes no file that a reader maps."""

    def refuse(file, missing_ok=False):
        if file.suffix == ".faiss":
            raise PermissionError(13, "Access is denied", str(file))
        real(file, missing_ok=missing_ok)

    real = Path.unlink
    with Index.create(tmp_path, "hashing:32") as index:
        monkeypatch.setattr(Path, "unlink", refuse)
        for number in range(4):
            index.add(Document(f"{number} {n}", f"text {number} {n}") for n in range(50))
        left = len(list(tmp_path.glob("*.faiss")))
        index.delete(where="id like '0%'")
        with pytest.raises(IndexBusyError), index.writer() as writer:
            writer.compact()  # a snapshot still holds deleted data
        monkeypatch.undo()
        index.add([Document("last", "last")])
        assert len(list(tmp_path.glob("*.faiss"))) < left
