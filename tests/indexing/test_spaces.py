"""Several encoders over one corpus: spaces are added and dropped without reading it again."""

from __future__ import annotations

import numpy
import pytest
from wrapped import Wrapped

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


class InterruptedEncoder(Wrapped):
    """An encoder that is interrupted at its second batch."""

    def __init__(self):
        super().__init__()
        self._batches = iter([self._encoder.encode_documents])

    def encode_documents(self, texts):
        for encode in self._batches:
            return encode(texts)
        raise KeyboardInterrupt


@pytest.mark.parametrize("how", ["add_space", "upsert"])
def test_interrupted_space_is_finished(index, how):
    with pytest.raises(KeyboardInterrupt):
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
    with pytest.raises(KeyboardInterrupt):
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


class Precise(Wrapped):
    """The hashing encoder, as if it had precisions; `auto` is bf16 here."""

    def __init__(self, precision):
        super().__init__()
        self.spec, self.fingerprint = "precise", "precise"
        self.precision = Precision(precision)

    def description(self):
        assert self.precision is not Precision.INT8  # it would have to be measured
        return {
            "precision": "bf16"
            if self.precision in (Precision.AUTO, Precision.FLOAT)
            else self.precision.value
        }


def test_all_vectors_of_a_space_have_one_precision(tmp_path, monkeypatch):
    def load(spec, device=None, precision="auto", **options):
        return Precise(precision) if spec == "precise" else load_encoder(spec)

    for module in ("index", "indexing.creation"):
        monkeypatch.setattr(f"semsearch.{module}.load_encoder", load)
    path = tmp_path / "p"
    with Index.create(path, ["precise"], precision="fp32") as index:
        index.add([Document("a", "a text")])
    for index in (Index.create(path, ["precise"]), Index.create(path), Index.open(path)):
        with index:
            assert index.space().description["precision"] == "fp32"
            assert index.encoder(index.space()).description()["precision"] == "fp32"
    for encoders in (None, ["precise"]):
        for precision in ("bf16", "int8"):
            with pytest.raises(SpaceError):
                Index.create(path, encoders, precision=precision)
        for precision in ("fp32", "auto"):
            Index.create(path, encoders, precision=precision).close()
    Index.create(tmp_path / "words", ["hashing"]).close()  # an encoder without precisions
    with Index.create(tmp_path / "words", precision="fp32") as index:
        assert index.space().spec == "hashing"
