"""The most similar pairs equal those of numpy, without holding the whole matrix."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal

import numpy
import pytest
from vectors import unit_rows

from semsearch.errors import ArgumentError
from semsearch.explore import pairs
from semsearch.explore.pairs import Pair, similar_pairs


def every_pair(vectors, min_score=-1.0, groups=None):
    """All pairs with their scores: by definition, in float64."""
    cosines = (vectors.astype(float) @ vectors.T.astype(float)).round(6).clip(-1, 1)
    lefts, rights = numpy.triu_indices(len(vectors), 1)
    found = zip(lefts.tolist(), rights.tolist(), cosines[lefts, rights].tolist(), strict=True)
    return {
        (left, right): score
        for left, right, score in found
        if score >= min_score and (groups is None or groups[left] != groups[right])
    }


def check(found, expected, k=None):
    """Pairs are the `k` best of the expected ones, in order, but for rounding in float32."""
    found = list(found)
    assert all(abs(expected[left, right] - score) < 2e-6 for left, right, score in found)
    assert len({pair[:2] for pair in found}) == len(found) == min(k or 1 << 30, len(expected))
    if k is not None:
        assert found == sorted(found, key=lambda pair: (-pair.score, pair.left, pair.right))
        best = sorted(expected.values(), reverse=True)[:k]
        assert [pair.score for pair in found] == pytest.approx(best, abs=2e-6)


@pytest.fixture(autouse=True)
def small_tiles(request, monkeypatch):
    """Split few rows into many tiles."""
    if "nightly" not in request.keywords:
        monkeypatch.setattr(pairs, "TILE_ROWS", 32)


@pytest.mark.parametrize("n", [0, 1, 2, 32, 33, 300])
@pytest.mark.parametrize("k", [1, 20, 1000])
def test_random_vectors(n, k):
    vectors = unit_rows(n, 24, seed=n)
    check(similar_pairs(vectors, k), every_pair(vectors), k)


def test_texts(hashing):
    random = numpy.random.default_rng(1)
    words = [f"word{number}" for number in range(30)]
    vectors = hashing.encode_documents([" ".join(random.choice(words, 6)) for _ in range(250)])
    expected = every_pair(vectors)
    in_order = sorted(expected, key=lambda pair: (-expected[pair], pair))
    assert len({expected[pair] for pair in in_order[:500]}) < 100  # many are equal
    for k in (1, 7, 50, 500):
        assert [pair[:2] for pair in similar_pairs(vectors, k)] == in_order[:k]


def test_equal_scores_are_ordered_by_position():
    vectors = unit_rows(200, 24)
    vectors[[150, 40, 99, 7]] = vectors[120]
    expected = [Pair(7, right, 1.0) for right in (40, 99, 120, 150)]
    assert list(similar_pairs(vectors, 4)) == expected
    vectors = numpy.repeat(unit_rows(1, 24), 300, axis=0)
    best = [tuple(pair) for pair in similar_pairs(vectors, 301)]
    assert best[:299] == [(0, right, 1.0) for right in range(1, 300)]
    assert best[299:] == [(1, 2, 1.0), (1, 3, 1.0)]


@pytest.mark.parametrize("min_score", [-1, 0.3, Decimal("0.99"), 1])
def test_min_score(min_score):
    vectors = unit_rows(150, 24)
    vectors[100] = vectors[3]
    expected = every_pair(vectors, float(min_score))
    check(similar_pairs(vectors, 40, min_score), expected, 40)
    check(similar_pairs(vectors, None, min_score), expected)
    assert Pair(3, 100, 1.0) in similar_pairs(vectors, None, min_score)


def test_a_rounded_score_is_compared_with_the_minimum():
    vectors = numpy.array([[1, 0], [0.8, 0.6]])
    assert list(similar_pairs(vectors, None, 0.8)) == [(0, 1, 0.8)]
    assert list(similar_pairs(vectors, None, 0.800001)) == []


def test_rows_of_a_group_are_not_paired():
    vectors = unit_rows(200, 24)
    groups = numpy.random.default_rng(0).integers(4, size=200)
    for k in (5, 500):
        check(similar_pairs(vectors, k, groups=groups), every_pair(vectors, groups=groups), k)
    assert list(similar_pairs(vectors, groups=numpy.zeros(200, int))) == []


def test_progress():
    calls = []
    list(similar_pairs(unit_rows(70, 8), on_progress=lambda *call: calls.append(call)))
    # By hand: tiles of 32, 32 and 6 rows, each with itself and the later ones.
    done = numpy.cumsum([496, 1024, 192, 496, 192, 15]).tolist()
    assert calls == [(one, 2415) for one in done]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("consume", "n"),
    [
        (lambda vectors: len(list(similar_pairs(vectors, 20))), 12_000),
        # 720,000 pairs, whose records alone would take 100 MiB if held in memory.
        (lambda vectors: sum(1 for _ in similar_pairs(vectors, None, -1.0)), 1_200),
    ],
    ids=["ranked", "streamed"],
)
def test_memory_is_bounded(consume, n):
    """The scores of all pairs would take 550 MiB."""
    vectors = unit_rows(n, 64)
    tracemalloc.start()
    try:
        assert consume(vectors) >= 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 << 20


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"min_score": 1.01},
        {"min_score": -1.01},
        {"groups": numpy.zeros(2, int)},
        {"groups": [1.0, float("nan"), 2.0]},
        {"vectors": numpy.zeros((3, 2))},
        {"vectors": None},
    ],
)
def test_mistakes_are_reported_before_iterating(arguments):
    with pytest.raises(ArgumentError):
        similar_pairs(**{"vectors": unit_rows(3, 8), **arguments})
