"""Encoding in a thread while the previous batch is written."""

from __future__ import annotations

import threading

import numpy
import pytest
from wrapped import Wrapped

from semsearch.indexing.pool import ThreadPool
from semsearch.storage.spaces import Space


class Slow(Wrapped):
    """An encoder that waits to be released."""

    def __init__(self):
        super().__init__("hashing:32")
        self.started, self.released = threading.Event(), threading.Event()
        self.calls = 0
        self.has_ended = False

    def encode_documents(self, texts):
        self.calls += 1
        self.started.set()
        self.released.wait(10)
        self.has_ended = True
        return self._encoder.encode_documents(texts)


@pytest.fixture
def slow():
    encoder = Slow()
    yield encoder
    encoder.released.set()


@pytest.fixture
def space(slow):
    return Space(1, "hashing", "hashing:32", slow.fingerprint, 32, True, {})


def test_an_encoder_may_reuse_its_array(slow, space):
    class Reusing(Slow):
        array = numpy.zeros((1, 32), numpy.float32)

        def encode_documents(self, texts):
            self.array[:] = self._encoder.encode_documents(texts)
            return self.array

    texts = ["one", "two"]
    with ThreadPool([(space, Reusing())]) as pool:
        results = [pool.submit(space, [text]) for text in texts]
        found = numpy.concatenate([result().vectors for result in results])
    assert numpy.array_equal(found, slow.encode_queries(texts))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_after_an_error_work_that_has_not_begun_is_dropped(slow, space, error):
    """After Ctrl-C, nobody waits for the work that has begun, either."""
    with pytest.raises(error), ThreadPool([(space, slow)]) as pool:
        pool.submit(space, ["one"])
        assert slow.started.wait(60)
        pool.submit(space, ["two"])
        if error is ValueError:
            threading.Timer(0.2, slow.released.set).start()
        raise error
    assert slow.calls == 1
    assert slow.has_ended is (error is ValueError)
