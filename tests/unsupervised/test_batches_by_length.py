"""Every text once, those of like length together, in an order that is drawn."""

from __future__ import annotations

import numpy

from semsearch.unsupervised.batches import batches_by_length


def test_every_row_once_with_its_like():
    lengths = numpy.random.default_rng(0).integers(1, 200, 1003)
    batches = batches_by_length(lengths, 16, numpy.random.default_rng(1))
    assert sorted(numpy.concatenate(batches).tolist()) == list(range(1003))
    assert {len(rows) for rows in batches} <= {14, 15, 16, 17}
    filled = sum(lengths[rows].sum() for rows in batches)
    padded = sum(len(rows) * lengths[rows].max() for rows in batches)
    assert filled > 0.95 * padded
    means = [lengths[rows].mean() for rows in batches]
    assert means != sorted(means)
    again = batches_by_length(lengths, 16, numpy.random.default_rng(1))
    assert all((one == other).all() for one, other in zip(batches, again, strict=True))


def test_a_few_rows_are_one_batch():
    (rows,) = batches_by_length(numpy.array([3, 1, 2]), 64, numpy.random.default_rng(0))
    assert sorted(rows.tolist()) == [0, 1, 2]
