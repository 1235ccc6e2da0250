"""Batches of texts of similar length."""

from __future__ import annotations

import numpy
import pytest

from semsearch.training.batching import LikeLengthBatches

LENGTHS = numpy.random.default_rng(0).integers(3, 60, 1000)


def batches(lengths=LENGTHS, size=16, seed=1, epoch=0, texts=()):
    sampler = LikeLengthBatches(lengths, texts, None, size, seed)
    sampler.set_epoch(epoch)
    found = list(sampler)
    assert len(found) == len(sampler)
    return found


def test_each_example_occurs_once():
    found = batches()
    assert sorted(row for batch in found for row in batch) == list(range(1000))
    assert sorted(map(len, found)) == [8] + 62 * [16]


def test_padding_is_small():
    """The longest of 16 random lengths from 3 to 59 (mean 31) is 54 on average."""
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in batches())
    assert padded < 1.1 * LENGTHS.sum()
    order = numpy.arange(1000).reshape(-1, 8)
    assert sum(8 * LENGTHS[batch].max() for batch in order) > 1.5 * LENGTHS.sum()


def test_order_depends_on_seed_and_epoch():
    assert batches() == batches()
    assert batches(seed=2) != batches()
    assert batches(epoch=1) != batches()
    # Not sorted by length: the learning rate falls from the first batch to the last.
    means = [LENGTHS[batch].mean() for batch in batches()]
    assert abs(numpy.corrcoef(means, range(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize("size", [4, 16])
def test_no_text_twice_in_a_batch(size):
    anchors = [f"a{row % 100}" for row in range(1000)]
    positives = [f"p{row}" for row in range(1000)]
    found = batches(size=size, texts=(anchors, positives))
    assert sorted(row for batch in found for row in batch) == list(range(1000))
    assert all(len({anchors[row] for row in batch}) == len(batch) for batch in found)
