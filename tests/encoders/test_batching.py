"""Batches of texts with similar lengths."""

from __future__ import annotations

import numpy
import pytest

from semsearch.encoders.text_model import batches, padded, windows


def texts(lengths):
    return [[7] * length for length in lengths]


@pytest.mark.parametrize("least_fill", [0.0, 0.9])
def test_each_text_is_in_one_batch(least_fill):
    lengths = numpy.random.default_rng(1).integers(1, 200, 500)
    found = []
    for rows, length in batches(texts(lengths), 1000, least_fill=least_fill):
        assert len(rows) == 1 or len(rows) * length <= 1000
        assert lengths[rows].max() == length
        assert lengths[rows].min() >= least_fill * length
        found += rows.tolist()
    assert sorted(found) == list(range(500))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([2, 9, 10, 4, 2], [([2, 1], 10), ([3, 0, 4], 4)]),
        ([], []),
        ([50, 3], [([0], 50), ([1], 4)]),  # longer than a batch
        ([0, 3, 0], [([1, 0, 2], 4)]),  # texts without a token are padding
        ([0, 0], [([0, 1], 1)]),
    ],
)
def test_batches_by_hand(lengths, expected):
    found = batches(texts(lengths), 20, length_of=lambda length: length + length % 2)
    assert [(rows.tolist(), length) for rows, length in found] == expected


@pytest.mark.parametrize(
    ("lengths", "at_once", "expected"),
    [
        ([5] * 8, 2, [4, 4]),
        ([5] * 8, 1, [8]),
        ([5], 2, [1]),
        ([90, 9, 9, 9, 9], 2, [1, 4]),  # the long one has a core to itself
        ([20, 18, 15, 15, 12, 11, 10, 9], 2, [3, 5]),  # 53 and 57 tokens of 110
        ([5] * 7, 4, [1, 2, 2, 2]),
        ([20] * 12, 2, [5, 5, 2]),  # more than two batches hold
    ],
)
def test_few_texts_are_divided_among_parallel_batches(lengths, at_once, expected):
    found = list(batches(texts(lengths), 100, at_once=at_once))
    assert [len(rows) for rows, _ in found] == expected
    assert sorted(row for rows, _ in found for row in rows) == list(range(len(lengths)))


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([], []),
        ([0, 0], [2]),
        ([5], [1]),
        ([10] * 10, [10]),
        ([10] * 13, [13]),  # a window of three would waste what sorting saves
        ([10] * 16, [8, 8]),
        ([10] * 35, [9, 9, 9, 8]),
        ([400, 1, 1], [1, 2]),
    ],
)
def test_windows_have_similar_sizes(lengths, sizes):
    texts = ["x" * length for length in lengths]
    found = list(windows(texts, 100))
    assert [len(window) for _, window in found] == sizes
    assert [text for _, window in found for text in window] == texts
    assert [start for start, _ in found] == [sum(sizes[:n]) for n in range(len(sizes))]
    pairs = [("ab", "c")] * 4
    assert [start for start, _ in windows(pairs, 6)] == [0, 2]


def test_padding():
    ids, mask = padded([[5, 6, 7], [8]], 4, pad_id=9)
    assert ids.tolist() == [[5, 6, 7, 9], [8, 9, 9, 9]]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]
