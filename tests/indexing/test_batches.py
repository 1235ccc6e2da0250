"""Batches are encoded while others are read and written, and no text is encoded twice."""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from wrapped import Wrapped

from semsearch import Document, Index
from semsearch.errors import EncoderError
from semsearch.indexing import batch as batches


class Watched(Wrapped):
    """An encoder that records what it encodes, and takes some seconds per batch."""

    def __init__(self, seconds=0.0):
        super().__init__()
        self._seconds = seconds
        self.texts = []
        self.sizes = []
        self.threads = set()

    def encode_documents(self, texts):
        self.texts += texts
        self.sizes.append(len(texts))
        self.threads.add(threading.current_thread())
        time.sleep(self._seconds)
        return self._encoder.encode_documents(texts)


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(batches, "FIRST_BATCH_DOCUMENTS", 4)
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 64)


def corpus(count):
    return [Document(str(number), f"Text {number}.") for number in range(count)]


@pytest.mark.parametrize(
    ("documents", "sizes"),
    [
        ([f"Text {number}." for number in range(700)], [256, 444]),
        ([f"{number} {'a' * 40_000}" for number in range(7)], [3, 3, 1]),  # by their characters
    ],
)
def test_the_first_batches_are_small(tmp_path, documents, sizes):
    encoder = Watched(seconds=0.01)
    batches, started = [], time.perf_counter()
    with Index.create(tmp_path / "x", [encoder]) as index:
        corpus = [Document(str(number), text) for number, text in enumerate(documents)]
        summary = index.add(corpus, on_batch=batches.append)
    assert encoder.sizes == sizes
    assert [one.documents for one in batches] == list(itertools.accumulate(sizes))
    seconds = [one.seconds for one in [*batches, summary]]
    assert seconds == sorted(seconds)
    assert 0 < seconds[0] < seconds[-1] <= time.perf_counter() - started


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("count", "seconds", "limits", "sizes"),
    [
        (300, 0.0, {}, [4, 8, 16, 32, 64, 64, 64, 48]),
        # The second was taken before any time was known.
        (40, 0.02, {"BATCH_SECONDS": 0.01}, [4, 8]),
        # Long documents, here of seven characters, come in small batches until their time is known.
        (10, 0.05, {"FIRST_BATCH_CHARACTERS": 20}, [3, 3, 4]),
    ],
)
def test_batches_grow_up_to_a_time_limit(tmp_path, monkeypatch, count, seconds, limits, sizes):
    for name, limit in limits.items():
        monkeypatch.setattr(batches, name, limit)
    encoder = Watched(seconds)
    with Index.create(tmp_path / "x", [encoder]) as index:
        assert index.add(corpus(count)).added == count
    assert encoder.sizes[: len(sizes)] == sizes
    assert sum(encoder.sizes) == count
    assert max(encoder.sizes[len(sizes) :], default=0) <= 4


@pytest.mark.usefixtures("small_batches")
def test_next_documents_are_read_during_encoding(tmp_path):
    fifth = threading.Event()

    class Waiting(Watched):
        def encode_documents(self, texts):
            assert fifth.wait(60)
            return super().encode_documents(texts)

    def recorded():
        for number, document in enumerate(corpus(12)):
            if number == 4:  # of the second batch
                fifth.set()
            yield document

    encoder = Waiting()
    with Index.create(tmp_path / "x", [encoder]) as index:
        assert index.add(recorded()).added == 12
    assert threading.main_thread() not in encoder.threads


@pytest.mark.usefixtures("small_batches")
def test_complete_batches_before_an_error_are_written(tmp_path):
    class Failing(Watched):
        def encode_documents(self, texts):
            if self.sizes:
                raise EncoderError("it has had enough")
            return super().encode_documents(texts)

    def broken():
        yield from corpus(6)
        raise ValueError("no more")

    for encoder, documents, error in (
        (Watched(seconds=0.05), broken(), ValueError),
        (Failing(), corpus(40), EncoderError),
    ):
        with Index.create(tmp_path / error.__name__, [encoder]) as index:
            with pytest.raises(error):
                index.add(documents)
            assert len(index) == 4  # the complete batch
