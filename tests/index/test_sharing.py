"""Batches that nodes write to an index on Milvus; the node runs in this process."""

from __future__ import annotations

import pickle

import numpy
import pytest

from semsearch import Document, Index, load_encoder
from semsearch.index import batch as batches
from semsearch.index.cluster.actor import EncodingActor
from semsearch.index.workers import LocalWorkers
from semsearch.stores.milvus.writer import MilvusWriter
from semsearch.version import __version__


class Encoder:
    """Returns no vector for texts with the word "nothing"."""

    spec = fingerprint = "partial"

    def __init__(self):
        self._encoder = load_encoder("hashing:32")

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        vectors = self._encoder.encode_documents(texts)
        vectors[["nothing" in text for text in texts]] = numpy.nan
        return vectors


class Node(LocalWorkers):
    """Writes each batch twice, as if it had died after the first time."""

    cutting_ahead = encoding_ahead = 2

    def __init__(self, spaces):
        super().__init__(spaces)
        self.nodes = self
        self._actor = EncodingActor(__version__, [])
        self._actor._encoders = dict(self._encoders)

    def write(self, share):
        first, second = (
            self._actor.write(pickle.loads(pickle.dumps(share)))  # noqa: S301 - ours
            for _ in range(2)
        )
        assert first.result == second.result
        return lambda: first._replace(node="here")

    def __exit__(self, *error):
        super().__exit__(*error)
        if self._actor._store:
            self._actor._store.close()


@pytest.fixture
def lite(package, tmp_path, monkeypatch):
    """The address of an index in a milvus-lite file, which only this process can write."""
    package("pymilvus")
    package("milvus_lite")
    monkeypatch.setattr(MilvusWriter, "can_share", True)
    monkeypatch.setattr(batches, "FIRST_BATCH_DOCUMENTS", 16)
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 32)
    return f"milvus-lite:{tmp_path}/file.db/one"


OLD = [
    Document(f"d{number}", f"Text {number % 70} of birds. " * (number % 3 + 1), None, {"n": number})
    for number in range(100)
]
NEW = [
    Document("e1", "There is nothing here."),
    *(Document(one.id, one.text, "Titled", {"n": str(one.metadata["n"])}) for one in OLD[10:30]),
    *(Document(one.id, f"Changed: {one.text}", None, one.metadata) for one in OLD[40:60]),
    Document("d70", "nothing"),
    Document("e2", OLD[5].text),
]


def write(index, documents):
    refused = []
    with index.writer(on_bad_row=refused.append) as writer:
        writer._workers_for = Node
        summary = writer.upsert(documents)
        assert writer.verify() == []
    return summary, [str(error) for error in refused]


def content(index):
    passages = index.passages()
    return list(index), passages.document_ids, passages.texts, passages.vectors.tolist()


def test_index_equals_a_local_one(lite, tmp_path):
    """With new, changed, unchanged and repeated texts, changed metadata and missing vectors."""
    with Index.create(lite, Encoder()) as milvus, Index.create(tmp_path / "x", Encoder()) as local:
        for documents in (OLD, NEW):
            summary, refused = write(milvus, documents)
            seen = []
            with local.writer(on_bad_row=seen.append) as writer:
                plain = writer.upsert(documents)
            assert refused == [str(error) for error in seen]
            for name in ("added", "changed", "metadata_changed", "unchanged", "chunks"):
                assert getattr(summary, name) == getattr(plain, name)
            assert summary.nodes["here"] >= plain.encoded
            assert content(milvus) == content(local)
        assert len(refused) == 2
        assert milvus.get("d70").text == OLD[70].text
        assert milvus.info().fields == local.info().fields
        left, right = (
            {hit.document_id: hit.score for hit in index.search("birds 7", 200)}
            for index in (milvus, local)
        )
        assert left == pytest.approx(right, abs=1e-5)
