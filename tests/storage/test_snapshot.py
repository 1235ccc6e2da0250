"""Snapshots are derived data: used if valid, replaced by the vectors in SQLite if not."""

from __future__ import annotations

import numpy
import pytest

from semsearch import Document, Index, load_encoder
from semsearch.storage.sqlite.spaces import snapshot_record
from semsearch.storage.sqlite.vectors import VectorView
from semsearch.vector_indexes.ivf import IvfIndex

TEXTS = [f"word{number % 7} thing{number % 11} {number}" for number in range(100)]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:32"]) as index:
        index.add([Document(str(number), text) for number, text in enumerate(TEXTS)])
        yield index


def view(index):
    with index.read() as state:
        connection = state.connection
        return VectorView(connection, index.path, index.space())


def record(index):
    with index.read() as state:
        connection = state.connection
        return snapshot_record(connection, index.space())


def files(index):
    return sorted(file.name for file in index.path.glob("*.faiss*"))


def test_the_first_snapshot(index):
    size = (index.path / "hashing-32-1.faiss").stat().st_size
    assert record(index) == (1, 1, size, 100, 100, 0, "flat", 0.98, 1)
    [snapshot] = index.info().snapshots.items()
    assert snapshot == ("hashing-32", ("hashing-32-1.faiss", "flat", 100, 1))
    assert index.info().files["hashing-32-1.faiss"] == size


@pytest.mark.parametrize(
    ("added", "deleted", "generation"),
    [(0, 0, 1), (10, 0, 1), (0, 10, 1), (5, 5, 1), (11, 0, 2), (0, 11, 2), (5, 6, 2)],
)
def test_a_snapshot_is_written_when_more_than_a_tenth_has_changed(
    index, added, deleted, generation
):
    with index.writer() as writer:
        writer.delete([str(n) for n in range(deleted)])
        writer.upsert(Document(f"new {n}", f"an uncommon word {n}") for n in range(added))
    now = record(index)
    total = 100 + added - deleted
    written = (2, total, 100 + added if added else 100, deleted)
    assert (now.generation, now.vectors, now.last_passage_id, now.deleted) == (
        written if generation == 2 else (1, 100, 100, 0)
    )
    assert len(index.search(TEXTS[1], k=200)) == total
    changes = added + deleted
    with index.writer() as writer:
        writer.compact()
    assert record(index).generation == (2 if changes else 1)
    assert record(index).vectors == total


def test_the_previous_snapshot_is_kept_for_readers_that_open_it(index):
    for run in range(2):
        index.add([Document(f"{run}-{number}", f"{run} {number}") for number in range(50)])
    assert files(index) == ["hashing-32-2.faiss", "hashing-32-3.faiss"]
    with index.writer() as writer:
        writer.drop_space(writer.add_space(load_encoder("hashing:8")).name)
        assert files(index) == ["hashing-32-2.faiss", "hashing-32-3.faiss"]
        writer.compact()
        assert files(index) == ["hashing-32-3.faiss"]


def test_an_empty_index_has_no_snapshot_until_there_was_one(index, tmp_path):
    index.delete([str(n) for n in range(100)])
    index.add([])
    assert (record(index).generation, record(index).vectors, record(index).last_passage_id) == (
        (2, 0, 0)
    )
    assert index.search("word1") == []
    with Index.create(tmp_path / "empty", ["hashing:32"]) as empty:
        with empty.writer() as writer:
            writer.compact()
        assert files(empty) == []
        assert record(empty) is None
        assert empty.search("word1") == []


@pytest.mark.parametrize("damage", ["foreign", "cut", "gone"])
def test_a_damaged_snapshot_is_reported_and_replaced(index, damage, caplog):
    expected = index.search("word3 thing5", k=10)
    file = index.path / "hashing-32-1.faiss"
    content = file.read_bytes()
    file.unlink()  # this index has it mapped
    if damage == "foreign":
        file.write_bytes(b"x" * len(content))
    elif damage == "cut":
        file.write_bytes(content[:-1])
    with Index.open(index.path) as other:
        assert other.search("word3 thing5", k=10) == expected
    assert len(caplog.records) == 1
    index.add([])  # any run repairs it
    assert record(index).generation == 2
    caplog.clear()
    assert index.search("word3 thing5", k=10) == expected
    assert not caplog.records


def test_ties_with_recent_vectors_are_ordered_by_passage_id(index):
    index.add([Document(f"new {n}", TEXTS[n % 2]) for n in range(10)])
    query = index.encoder(index.space()).encode_queries([TEXTS[1]])
    scores, ids = view(index).search(query, 7)
    assert ids[0, :6].tolist() == [2, 102, 104, 106, 108, 110]
    assert (numpy.diff(scores[0]) <= 0).all()
    _, ids = view(index).search(query, 3, numpy.arange(103, 109))
    assert ids[0].tolist() == [104, 106, 108]
    _, ids = view(index).search(query, 9, numpy.array([7, 102]))
    assert ids[0, :3].tolist() == [102, 7, -1]


def kinds(index):
    return {name: (one.kind, one.recall) for name, one in index.info().snapshots.items()}


class TestIndexTypes:
    @pytest.fixture(autouse=True)
    def of_few_vectors(self, monkeypatch):
        monkeypatch.setattr("semsearch.vector_indexes.MIN_IVF_VECTORS", 100)

    def test_the_requested_type_is_built(self, index):
        where = f"id in {tuple(str(n) for n in range(0, 100, 3))}"
        before = [index.search("word3 thing4", k=20, where=one) for one in (None, where)]
        with index.writer() as writer:
            writer.set_index_type("ivf", recall=0.99)
            writer.optimise()
        ((kind, recall),) = kinds(index).values()
        assert kind == "ivf"
        assert 0.9 <= recall <= 1
        found = [index.search("word3 thing4", k=20, where=one) for one in (None, where)]
        assert found == before
        with index.writer() as writer:
            writer.set_index_type("flat")
            writer.optimise()
        assert kinds(index) == {"hashing-32": ("flat", 1)}

    def test_it_is_built_again_for_another_recall(self, index):
        generations = []
        for kind, recall in [("ivf", 0.9), ("ivf", 0.9), ("ivf", 0.8), ("flat", 0.8), ("flat", 1)]:
            with index.writer() as writer:
                writer.set_index_type(kind, recall=recall)
                writer.optimise()
            generations.append(record(index).generation)
        assert generations == [2, 2, 3, 4, 4]
        assert record(index).wanted_recall == 0.8

    def test_the_type_changes_as_the_index_grows(self, index, monkeypatch):
        monkeypatch.setattr("semsearch.vector_indexes.FLAT_NUMBERS", 120 * 32)
        index.add([Document("a", "a text")])
        assert kinds(index)["hashing-32"][0] == "flat"
        index.add([Document(f"more {n}", text) for n, text in enumerate(TEXTS)])
        assert kinds(index)["hashing-32"][0] == "ivf"

    @pytest.mark.parametrize(("measured", "warned"), [(0.9443, True), (0.946, False)])
    def test_a_recall_below_the_wanted_one(self, index, monkeypatch, caplog, measured, warned):
        """With a little tolerance, as other queries were used for tuning."""
        monkeypatch.setattr(IvfIndex, "measured_recall", lambda index: measured)
        with index.writer() as writer:
            writer.set_index_type("ivf", recall=0.95)
            writer.optimise()
        assert ["0.944" in message for message in caplog.messages] == ([True] if warned else [])


class TestOpenReaders:
    def test_commits_are_seen_with_and_without_a_new_snapshot(self, index):
        with Index.open(index.path) as reader:
            reader.search("word3")
            for number in range(3):
                index.add([Document(f"new {number}", f"quite {number} new")])
                assert reader.search(f"quite {number} new", k=1)[0].document_id == f"new {number}"
            index.delete(ids=["new 1"])
            hits = reader.search("quite 1 new", k=3)
            assert "new 1" not in [hit.document_id for hit in hits]
            index.add([Document(f"more {n}", text) for n, text in enumerate(TEXTS)])
            assert len(reader.search("word3", k=300)) == 202
