"""An index pushed to milvus-lite and pulled back: equal, not encoded again, resumable."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from semsearch import Corpus, Document, Index, load_encoder
from semsearch.addresses import place
from semsearch.analysis import language
from semsearch.errors import CombinationError, IndexStoreError, RemovalError, SpaceError
from semsearch.index import copying
from semsearch.index.copying import Copied, copy_index

DOCUMENTS = [
    Document(f"d{number}", f"\tamber birch {number}. " * (number % 7 * 9 + 1), None, {"n": number})
    for number in range(30)
] + [Document("same", "\tamber birch 0. ", "Title", {"x": [1, "a", None, {"b": 1.0}]})]


@pytest.fixture
def local(tmp_path):
    path = tmp_path / "local"
    with Index.create(path, ["hashing:64", "hashing:32"]) as index:
        index.add(DOCUMENTS)
    return path


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(copying, "DOCUMENTS_AT_ONCE", 8)


def content(path):
    """Documents, passages, vectors by space, and the spaces' fingerprints."""
    with Index.open(path) as index, index.read() as state:
        ids = state.ids()
        vectors = {
            space.name: {name: rows.round(6).tolist() for name, rows in found.items()}
            for space in state.spaces()
            for found in [state.document_vectors(space, ids)]
        }
        known = {name: one[1:] for name, one in state.known(ids).items()}
        fingerprints = [space.fingerprint for space in state.spaces()]
        return list(index), state.passages_of(ids), vectors, known, fingerprints


def test_round_trip(local, lite, tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.encoders.hashing.HashingEncoder.encode_documents", None)
    address, back = place(lite), tmp_path / "back"
    copied = copy_index(local, address)
    assert (copied.documents, copied.written, copied.removed) == (31, 31, 0)
    assert copy_index(local, address) == copied._replace(written=0)
    assert copy_index(address, back) == copied
    assert content(local) == content(address) == content(back)
    for path in (address, back):
        with Index.open(path) as index, index.writer() as writer:
            assert writer.verify() == []


def test_only_changes_are_copied(local, lite):
    address = place(lite)
    copy_index(local, address)
    with Index.open(local) as index:
        index.delete(["d1", "d2"])
        index.add([Document("d3", "new text"), Document("d4", DOCUMENTS[4].text, "new title")])
        chunks = index.info().chunks
    assert copy_index(local, address) == Copied(29, 2, 2, chunks)
    with Index.open(address) as copy, Index.open(local) as index:
        assert {one.id: one for one in copy} == {one.id: one for one in index}
        assert copy.search("new text", 1)[0].document_id == "d3"


def test_how_corpora_were_read_is_copied(local, lite, tmp_path):
    (tmp_path / "corpus.csv").write_text("ref,text\n1,cedar\n2,dogwood\n")
    with Index.open(local) as index:
        index.add(Corpus(tmp_path / "corpus.csv", id_column="ref"))
    copy_index(local, place(lite))
    with Index.open(place(lite)) as copy:
        with pytest.raises(CombinationError, match="'ref'"):
            copy.add(Corpus(tmp_path / "corpus.csv", id_column="text"))
        assert copy.add(Corpus(tmp_path / "corpus.csv")).unchanged == 2


def test_an_interrupted_copy_is_resumed(local, lite):
    def interrupt(done, total):
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_index(local, place(lite), on_batch=interrupt)
    assert copy_index(local, place(lite)).written == 31 - 16
    assert content(local) == content(place(lite))


def test_other_spaces_and_large_removals_are_refused(local, lite, tmp_path):
    other = tmp_path / "other"
    with Index.create(other, "hashing:16") as index:
        index.add(DOCUMENTS[:1])
    copy_index(local, place(lite))
    with pytest.raises(SpaceError, match="hashing-16"):
        copy_index(other, place(lite))
    with Index.open(local) as index:
        index.delete(where="n > 5")
    with pytest.raises(RemovalError, match="24 of 31"):
        copy_index(local, place(lite))
    assert copy_index(local, place(lite), allow_removals=True).removed == 24


def test_new_documents_do_not_raise_the_limit_of_removals(local, tmp_path):
    target = tmp_path / "target"
    with Index.create(target, ["hashing:64", "hashing:32"]) as index:
        index.add([Document(f"e{number}", "cedar") for number in range(12)])
    with Index.open(local) as index:
        index.add([Document(f"f{number}", "cedar") for number in range(100)])
    before = content(target)
    with pytest.raises(RemovalError, match="12 of 12"):
        copy_index(local, target)
    assert content(target) == before
    assert copy_index(local, target, allow_removals=True)[:3] == (131, 131, 12)


def test_nor_do_those_of_an_interrupted_copy(tmp_path):
    def interrupt(done, total):
        if done == 248:
            raise KeyboardInterrupt

    with Index.create(tmp_path / "source", "hashing:16") as index:
        index.add(Document(f"new {number}", "amber") for number in range(300))
    with Index.create(tmp_path / "copy", "hashing:16") as index:
        index.add(Document(f"old {number}", "birch") for number in range(20))
    with pytest.raises(KeyboardInterrupt):
        copy_index(tmp_path / "source", tmp_path / "copy", allow_removals=True, on_batch=interrupt)
    for _ in range(2):
        with pytest.raises(RemovalError, match="20 of 268"):
            copy_index(tmp_path / "source", tmp_path / "copy")
    copied = copy_index(tmp_path / "source", tmp_path / "copy", allow_removals=True)
    assert (copied.written, copied.removed) == (52, 20)
    with Index.open(tmp_path / "copy") as index, index.writer() as writer:
        assert writer.sync(list(index)[30:]).removed == 30


def test_spaces_in_another_order_are_refused(local, tmp_path):
    """The first one is the default of searches."""
    with Index.create(tmp_path / "other", ["hashing:32", "hashing:64"]):
        pass
    with pytest.raises(SpaceError):
        copy_index(local, tmp_path / "other")


def test_an_unequal_copy_is_reported(local, lite):
    address = place(lite)
    copy_index(local, address)
    with Index.open(address, [load_encoder("hashing:64")]) as index:
        store, space = index._store, index.space()
        with store.read() as state:
            [rows] = state.reader.in_order(
                f"one_space_{space.id}", "row", ["chunk", "document", "version", "fields"]
            )
        for row in rows:
            row["vector"] = [1.0] + [0.0] * 63
        store._connection.upsert(f"one_space_{space.id}", rows)
    with pytest.raises(IndexStoreError, match="'hashing-64'"):
        copy_index(local, address)


def test_the_language_is_copied_and_field_indexes_are_reported(local, lite, tmp_path, caplog):
    with Index.open(local) as index, index.writer() as writer:
        writer.set_language("english")
        writer.index_field("n")
    copy_index(local, place(lite))
    assert "'n'" in caplog.text
    copy_index(place(lite), tmp_path / "back")
    for path in (place(lite), tmp_path / "back"):
        with Index.open(path) as copy:
            assert copy.info().language == language("english")
            assert copy.search("birches", 1, mode="bm25")


def test_settings_that_the_copy_keeps_are_reported(local, tmp_path, caplog):
    copy_index(local, tmp_path / "copy")
    assert not caplog.text
    with Index.open(tmp_path / "copy") as index, index.writer() as writer:
        writer.set_language("german")
        writer.set_index_type("hnsw", recall=0.9)
    copy_index(local, tmp_path / "copy")
    assert "hnsw, recall 0.9" in caplog.text
    assert "'german'" in caplog.text


def test_float16_comes_back_bit_for_bit(lite, tmp_path):
    """Its rounded vectors are not of unit length, and copying does not normalise them."""
    path, back = tmp_path / "one", tmp_path / "back"
    with Index.create(path, "hashing:64", dtype="float16") as index, index.writer() as writer:
        writer.upsert(DOCUMENTS)
        writer.add_space(load_encoder("hashing:32"), "float32")
    copy_index(path, place(lite))
    copy_index(place(lite), back)
    with Index.open(path) as left, Index.open(place(lite)) as copy, Index.open(back) as right:
        types = [[space.dtype for space in index.spaces()] for index in (left, copy, right)]
        assert types == [["float16", "float32"]] * 3
        for space in ("hashing-64", "hashing-32"):
            found = [
                [(hit.document_id, hit.score) for hit in index.search("birch 7", 31, space=space)]
                for index in (left, copy)
            ]
            assert [name for name, _ in found[0]] == [name for name, _ in found[1]]
            scores = [[score for _, score in one] for one in found]
            assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    rows = []
    for directory in (path, back):
        with closing(sqlite3.connect(directory / "index.sqlite")) as database:
            stored = "SELECT space_id, chunk_id, vector FROM vectors ORDER BY 1, 2"
            rows.append(database.execute(stored).fetchall())
    assert len(rows[0][0][2]) == 2 * 64
    assert rows[0] == rows[1]


def test_another_stored_type_is_refused(lite, tmp_path):
    for name, dtype in (("one", "float16"), ("other", "float32")):
        with Index.create(tmp_path / name, "hashing:64", dtype=dtype) as index:
            index.add(DOCUMENTS[:3])
    copy_index(tmp_path / "one", place(lite))
    with pytest.raises(SpaceError, match="float16, not float32"):
        copy_index(tmp_path / "other", place(lite))


def test_a_copy_whose_creation_was_interrupted_gets_its_other_spaces(local, lite):
    with Index.create(lite, "hashing:64"):
        pass
    copy_index(local, place(lite))
    assert content(local) == content(place(lite))
