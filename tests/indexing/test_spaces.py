"""Several encoders over one corpus: spaces are added and dropped without reading it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy
import pytest

from semsearch import Document, Index
from semsearch.encoders import load_encoder
from semsearch.encoders.specs import Precision
from semsearch.errors import SpaceError
from semsearch.storage.sqlite.spaces import vector_blocks

DOCUMENTS = [Document(str(number), f"text number {number}") for number in range(300)]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", ["hashing"]) as index:
        index.add(DOCUMENTS)
        yield index


def add(index, encoder):
    with index.writer() as writer:
        return writer.add_space(encoder)


def matrix(index, name):
    """The vectors of a space, which may be incomplete."""
    with index.read() as state:
        blocks = vector_blocks(state.connection, index.space(name))
        return numpy.concatenate([rows for _, rows in blocks])


def test_a_space_is_added_from_the_stored_texts(index):
    batches = []
    with index.writer(on_batch=batches.append) as writer:
        space = writer.add_space(load_encoder("hashing:16"))
    assert [(one.encoded, one.nodes) for one in batches] == [(256, {}), (300, {})]
    assert (space.name, space.complete, space.dimension) == ("hashing-16", True, 16)
    expected = load_encoder("hashing:16").encode_documents([d.text for d in DOCUMENTS])
    numpy.testing.assert_array_equal(matrix(index, "hashing-16"), expected)
    assert (index.path / "hashing-16-1.faiss").exists()
    assert add(index, load_encoder("hashing:16")) == space  # again does nothing
    index.add([Document("new", "a new text")])
    assert len(matrix(index, "hashing")) == len(matrix(index, "hashing-16")) == 301
    with index.writer() as writer:
        assert writer.verify() == []


class Interrupted(BaseException):
    pass


class InterruptedEncoder:
    """An encoder that is interrupted at its second batch."""

    def __init__(self):
        self._encoder = load_encoder("hashing:16")
        self._batches = iter([self._encoder.encode_documents])

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        for encode in self._batches:
            return encode(texts)
        raise Interrupted


@pytest.mark.parametrize("how", ["add_space", "upsert"])
def test_interrupted_space_is_finished(index, how):
    with pytest.raises(Interrupted):
        add(index, InterruptedEncoder())
    assert len(matrix(index, "hashing-16")) == 256  # the first batch
    with pytest.raises(SpaceError):
        index.search("text", space="hashing-16")
    assert len(index.search("text", k=400)) == 300
    assert index.info().systems == ["hashing", "bm25"]
    if how == "add_space":
        add(index, load_encoder("hashing:16"))
    else:
        index.add([Document("new", "a new text")])
    assert len(matrix(index, "hashing-16")) == len(index)
    assert index.search("text number 5", k=1, space="hashing-16")[0].score > 0.99


def test_a_space_whose_newest_passages_have_vectors_and_earlier_ones_not_yet(index, monkeypatch):
    with pytest.raises(Interrupted):
        add(index, InterruptedEncoder())
    with monkeypatch.context() as patch:
        patch.setattr("semsearch.indexing.writer.IndexWriter._complete", lambda *arguments: None)
        index.add([Document("new", "a new text")])
    with index.writer() as writer:
        writer.compact()
        assert "hashing-16" not in index.info().snapshots
    add(index, load_encoder("hashing:16"))
    assert len(index.search("text", k=400, space="hashing-16")) == 301
    with index.writer() as writer:
        assert writer.verify() == []


def test_repair_completes_every_space(index):
    add(index, load_encoder("hashing:16"))
    with closing(sqlite3.connect(index.path / "index.sqlite")) as connection, connection:
        damaged = "UPDATE vectors SET vector = zeroblob(64) WHERE space_id = 2 AND passage_id = 1"
        assert connection.execute(damaged).rowcount == 1
    with index.writer() as writer:
        assert writer.verify() != []
        writer.repair()
        assert writer.verify() == []
    assert len(matrix(index, "hashing-16")) == 300


def test_a_space_is_dropped(index):
    add(index, load_encoder("hashing:16"))
    with index.writer() as writer:
        writer.drop_space("hashing")
    assert [space.name for space in index.info().spaces] == ["hashing-16"]
    assert not list(index.path.glob("hashing-1.faiss"))
    assert len(index.search("text", k=400)) == 300
    index.add([Document("new", "a new text")])
    with index.writer() as writer:
        assert writer.verify() == []
        with pytest.raises(SpaceError):
            writer.drop_space("hashing-16")
        with pytest.raises(SpaceError):
            writer.drop_space("other")


def test_float16_halves_the_vectors_and_keeps_the_ranking(tmp_path):
    answers = {}
    for dtype in ("float32", "float16"):
        with Index.create(tmp_path / dtype, ["hashing"], dtype=dtype) as index:
            index.add(DOCUMENTS)
            vectors = matrix(index, "hashing")
            numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)
            answers[dtype] = index.search_many([d.text for d in DOCUMENTS[::50]], k=1)
            with index.writer() as writer:
                assert writer.verify() == []
            with index.read() as state:
                longest = "SELECT max(length(vector)) FROM vectors"
                size = state.connection.exec_driver_sql(longest).scalar_one()
            assert size == 256 * numpy.dtype(dtype).itemsize
    for single, half in zip(*answers.values(), strict=True):
        assert single[0].document_id == half[0].document_id
        assert single[0].score == pytest.approx(half[0].score, abs=1e-3)


class Precise:
    """The hashing encoder, as if it had precisions; `auto` is bf16 here."""

    def __init__(self, precision):
        self._encoder = load_encoder("hashing:16")
        self.spec, self.fingerprint = "precise", "precise"
        self.precision = Precision(precision)

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def description(self):
        assert self.precision is not Precision.INT8  # it would have to be measured
        return {"precision": "bf16" if self.precision is Precision.AUTO else self.precision.value}


class TestPrecision:
    """All vectors of a space have one precision."""

    @pytest.fixture
    def made(self, tmp_path, monkeypatch):
        def load(spec, device=None, precision="auto", **options):
            return Precise(precision) if spec == "precise" else load_encoder(spec)

        for module in ("index", "indexing.creation"):
            monkeypatch.setattr(f"semsearch.{module}.load_encoder", load)
        with Index.create(tmp_path / "p", ["precise"], precision="fp32") as index:
            index.add([Document("a", "a text")])
        return tmp_path / "p"

    def test_is_kept(self, made):
        for index in (Index.create(made, ["precise"]), Index.create(made), Index.open(made)):
            with index:
                assert index.space().description["precision"] == "fp32"
                assert index.encoder(index.space()).description()["precision"] == "fp32"

    @pytest.mark.parametrize("encoders", [None, ["precise"]])
    def test_another_one_is_refused(self, made, encoders):
        for precision in ("bf16", "int8"):
            with pytest.raises(SpaceError):
                Index.create(made, encoders, precision=precision)
        for precision in ("fp32", "auto"):
            Index.create(made, encoders, precision=precision).close()

    def test_encoders_without_precisions(self, tmp_path):
        Index.create(tmp_path / "words", ["hashing"]).close()
        with Index.create(tmp_path / "words", precision="fp32") as index:
            assert index.space().spec == "hashing"
