"""Batches are encoded while others are read and written, and no text is encoded twice."""

from __future__ import annotations

import threading
import time

import pytest

from semsearch import Document, Index, load_encoder
from semsearch.errors import EncoderError
from semsearch.index import batch as batches


class Watched:
    """An encoder that records what it encodes, and takes some seconds per batch."""

    def __init__(self, seconds=0.0):
        self._encoder = load_encoder("hashing:16")
        self._seconds = seconds
        self.texts = []
        self.sizes = []
        self.threads = set()

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode_documents(self, texts):
        self.texts += texts
        self.sizes.append(len(texts))
        self.threads.add(threading.current_thread())
        time.sleep(self._seconds)
        return self._encoder.encode_documents(texts)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batches, "FIRST_BATCH_DOCUMENTS", 4)
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 64)


def corpus(count):
    return [Document(str(number), f"Text {number}.") for number in range(count)]


def test_batches_grow(tmp_path):
    encoder = Watched()
    with Index.create(tmp_path / "x", [encoder]) as index:
        assert index.add(corpus(300)).added == 300
    assert encoder.sizes[:5] == [4, 8, 16, 32, 64]
    assert max(encoder.sizes) == 64
    assert sum(encoder.sizes) == 300


def test_batches_do_not_grow_beyond_the_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.01)
    encoder = Watched(seconds=0.02)
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(corpus(40))
    assert encoder.sizes[:2] == [4, 8]  # the second was taken before any time was known
    assert max(encoder.sizes[2:]) <= 4


def test_long_documents_come_in_small_batches_until_their_time_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "FIRST_BATCH_CHARACTERS", 20)
    encoder = Watched(seconds=0.05)
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(corpus(10))  # of seven characters each
    assert encoder.sizes == [3, 3, 4]


def test_next_documents_are_read_during_encoding(tmp_path):
    read, read_when_encoding = [], []

    class Looking(Watched):
        def encode_documents(self, texts):
            time.sleep(0.2)
            read_when_encoding.append(len(read))
            return super().encode_documents(texts)

    def recorded():
        for document in corpus(12):
            read.append(document)
            yield document

    encoder = Looking()
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(recorded())
    assert read_when_encoding[0] > 4
    assert threading.main_thread() not in encoder.threads


def test_text_of_the_previous_batch_is_not_encoded_again(tmp_path):
    encoder = Watched(seconds=0.05)
    documents = [Document(str(number), f"Text {number % 5}.") for number in range(40)]
    with Index.create(tmp_path / "x", [encoder]) as index:
        assert index.add(documents).encoded == 5
    assert sorted(encoder.texts) == sorted({document.text for document in documents})


def test_complete_batches_before_an_error_are_written(tmp_path):
    def broken():
        yield from corpus(6)
        raise ValueError("no more")

    with Index.create(tmp_path / "x", [Watched(seconds=0.05)]) as index:
        with pytest.raises(ValueError, match="no more"):
            index.add(broken())
        assert len(index) == 4  # the complete batch
        assert index.add(corpus(6)).added == 2


def test_encoder_error_is_raised(tmp_path):
    class Failing(Watched):
        def encode_documents(self, texts):
            if self.sizes:
                raise EncoderError("it has had enough")
            return super().encode_documents(texts)

    with Index.create(tmp_path / "x", [Failing()]) as index:
        with pytest.raises(EncoderError, match="it has had enough"):
            index.add(corpus(40))
        assert len(index) == 4
