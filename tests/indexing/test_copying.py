"""Copies of indexes between stores: equal, not encoded again, resumable."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Corpus, Document, Index, load_encoder
from semsearch.errors import ArgumentError, RemovalError
from semsearch.indexing import batch
from semsearch.indexing.copying import Copied, copy_index
from semsearch.storage.address import place
from semsearch.storage.interface import unit_vectors

DOCUMENTS = [
    Document(f"d{number}", f"\tamber birch {number}. " * (number % 7 * 9 + 1), None, {"n": number})
    for number in range(30)
] + [Document("same", "\tamber birch 0. ", "Title", {"x": [1, "a", None, {"b": 1.0}]})]


@pytest.fixture
def paths(tmp_path):
    with Index.create(tmp_path / "local", ["hashing:64", "hashing:32"]) as index:
        index.add(DOCUMENTS)
    return index.path, tmp_path / "copy"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batch, "FIRST_BATCH_DOCUMENTS", 8)
    monkeypatch.setattr(batch, "BATCH_DOCUMENTS", 8)


def content(path):
    """Documents, passages, vectors by space, and the spaces' fingerprints."""
    with Index.open(path) as index, index.read() as state:
        ids = state.ids()
        passages = state.passages_of(ids)
        hashes = [one.text_hash for name in ids for one in passages[name]]
        vectors = [unit_vectors(state, space, hashes).round(6).tolist() for space in state.spaces()]
        known = {name: one[1:] for name, one in state.stored_documents(ids).items()}
        fingerprints = [space.fingerprint for space in state.spaces()]
        return list(index), passages, vectors, known, fingerprints


def test_milvus_and_back(package, tmp_path, monkeypatch, caplog):
    """Vectors stay the same bit for bit."""
    package("pymilvus")
    package("milvus_lite")
    paths = [tmp_path / "local", place(f"milvus-lite:{tmp_path}/file.db/one"), tmp_path / "back"]
    with Index.create(paths[0], "hashing:64") as index, index.writer() as writer:
        writer.upsert(DOCUMENTS)
        writer.add_space(load_encoder("hashing:32"))
        writer.set_stemmer("english")
        writer.index_field("n")
    monkeypatch.setattr("semsearch.encoders.hashing.HashingEncoder.encode_documents", None)
    copied = copy_index(paths[0], paths[1])
    assert (copied.documents, copied.written, copied.removed) == (31, 31, 0)
    # Milvus has no indexes of fields, and its BM25 no languages.
    assert "'n'" in caplog.text
    assert "language" in caplog.text
    assert copy_index(paths[0], paths[1]) == copied._replace(written=0)
    assert copy_index(paths[1], paths[2]) == copied
    documents, *rest = content(paths[0])
    assert documents == DOCUMENTS
    for path in paths[1:]:
        assert content(path) == (documents, *rest)
        with Index.open(path) as index, index.writer() as writer:
            assert writer.verify() == []
    rows = []
    for path in (paths[0], paths[2]):
        with closing(sqlite3.connect(path / "index.sqlite")) as database:
            stored = "SELECT space_id, passage_id, vector FROM vectors ORDER BY 1, 2"
            rows.append(database.execute(stored).fetchall())
    assert rows[0] == rows[1]


def test_only_changes_are_copied(paths):
    local, copy = paths
    copy_index(local, copy)
    with Index.open(local) as index:
        index.delete(["d1", "d2"])
        index.add([Document("d3", "new text"), Document("d4", DOCUMENTS[4].text, "new title")])
        passages = index.info().passages
    assert copy_index(local, copy) == Copied(29, 2, 2, passages)
    with Index.open(copy) as other, Index.open(local) as index:
        assert {one.id: one for one in other} == {one.id: one for one in index}
        assert other.search("new text", 1)[0].document_id == "d3"


def test_how_corpora_were_read_is_copied(paths, tmp_path):
    local, copy = paths
    (tmp_path / "corpus.csv").write_text("ref,text\n1,cedar\n2,dogwood\n")
    with Index.open(local) as index:
        index.add(Corpus(tmp_path / "corpus.csv", id_column="ref"))
    copy_index(local, copy)
    with Index.open(copy) as other:
        with pytest.raises(ArgumentError, match="'ref'"):
            other.add(Corpus(tmp_path / "corpus.csv", id_column="text"))
        assert other.add(Corpus(tmp_path / "corpus.csv")).unchanged == 2


def test_an_interrupted_copy_is_resumed(paths):
    local, copy = paths

    def interrupt(done, total):
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_index(local, copy, on_batch=interrupt)
    assert copy_index(local, copy).written == 31 - 16
    assert content(local) == content(copy)


def test_another_index_is_not_overwritten(paths):
    local, copy = paths
    others = [Document(f"d{number}", "Another.") for number in range(20, 50)]
    with Index.create(copy, ["hashing:64", "hashing:32"]) as index:
        index.add(others)
    with pytest.raises(RemovalError):
        copy_index(local, copy)
    with Index.open(copy) as index:
        assert list(index) == others
    assert copy_index(local, copy, allow_removals=True).removed == 20
    assert content(local)[0] == sorted(content(copy)[0], key=DOCUMENTS.index)
