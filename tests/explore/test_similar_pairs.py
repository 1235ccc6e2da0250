"""The most similar pairs equal those of numpy, without holding the whole matrix."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal

import numpy
import pytest

from semsearch.errors import ArgumentError
from semsearch.explore import cells, pairs
from semsearch.explore.pairs import similar_pairs
from semsearch.records import Pair


def unit_rows(n, dimension, seed=0):
    return normalised(numpy.random.default_rng(seed).standard_normal((n, dimension)))


def normalised(rows):
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)


def clustered_rows(n, dimension=64, clusters=60, spread=0.5, seed=0):
    random = numpy.random.default_rng(seed)
    centres = normalised(random.standard_normal((clusters, dimension)))
    noise = normalised(random.standard_normal((n, dimension)))
    return normalised(centres[random.integers(clusters, size=n)] + spread * noise)


def every_pair(vectors, min_score=-1.0, groups=None):
    """All pairs in order: by definition, in float64, by sorting all of them."""
    doubles = vectors.astype(numpy.float64)
    cosines = (doubles @ doubles.T).round(6).clip(-1, 1)
    lefts, rights = numpy.triu_indices(len(vectors), 1)
    pairs = zip(lefts.tolist(), rights.tolist(), cosines[lefts, rights].tolist(), strict=True)
    wanted = (
        Pair(left, right, score)
        for left, right, score in pairs
        if score >= min_score and (groups is None or groups[left] != groups[right])
    )
    return sorted(wanted, key=lambda pair: (-pair.score, pair.left, pair.right))


@pytest.fixture
def small_tiles(monkeypatch):
    """Split few rows into many tiles and pieces."""
    monkeypatch.setattr(pairs, "TILE_ROWS", 32)
    monkeypatch.setattr(pairs, "RESCORED_NUMBERS", 1 << 10)


@pytest.mark.usefixtures("small_tiles")
class TestExact:
    @pytest.mark.parametrize("n", [2, 32, 33, 300])
    @pytest.mark.parametrize("k", [1, 1000])
    def test_random_vectors(self, n, k):
        vectors = unit_rows(n, 24, seed=n)
        assert list(similar_pairs(vectors, k)) == every_pair(vectors)[:k]

    def test_texts(self, hashing):
        random = numpy.random.default_rng(1)
        words = [f"word{number}" for number in range(30)]
        texts = [" ".join(random.choice(words, 6)) for _ in range(250)]
        vectors = hashing.encode_documents(texts)
        expected = every_pair(vectors)
        assert len({pair.score for pair in expected[:500]}) < 100  # many are equal
        for k in (1, 7, 50, 500):
            assert list(similar_pairs(vectors, k)) == expected[:k]

    def test_equal_scores_are_ordered_by_position(self):
        vectors = unit_rows(200, 24)
        vectors[[150, 40, 99, 7]] = vectors[120]
        best = [(pair.left, pair.right, pair.score) for pair in similar_pairs(vectors, 4)]
        assert best == [(7, 40, 1.0), (7, 99, 1.0), (7, 120, 1.0), (7, 150, 1.0)]

    def test_identical_vectors(self):
        vectors = numpy.repeat(unit_rows(1, 24), 300, axis=0)
        best = [tuple(pair) for pair in similar_pairs(vectors, 301)]
        assert best[:299] == [(0, right, 1.0) for right in range(1, 300)]
        assert best[299:] == [(1, 2, 1.0), (1, 3, 1.0)]

    @pytest.mark.parametrize("min_score", [-1, 0.3, Decimal("0.99"), 1])
    def test_min_score(self, min_score):
        vectors = unit_rows(150, 24)
        vectors[100] = vectors[3]
        expected = every_pair(vectors, min_score)
        assert list(similar_pairs(vectors, 40, min_score)) == expected[:40]
        found = list(similar_pairs(vectors, None, min_score))
        assert sorted(found) == sorted(expected)
        assert Pair(3, 100, 1.0) in found

    def test_rows_of_a_group_are_not_paired(self):
        vectors = clustered_rows(200, clusters=3)
        groups = numpy.random.default_rng(0).integers(4, size=200)
        for k in (5, 500):
            assert (
                list(similar_pairs(vectors, k, groups=groups))
                == every_pair(vectors, groups=groups)[:k]
            )
        assert list(similar_pairs(vectors, groups=numpy.zeros(200, int))) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("consume", "n"),
    [
        (lambda vectors: len(list(similar_pairs(vectors, 20))), 12_000),
        # 720,000 pairs, whose records alone would take 100 MiB if held in memory.
        (lambda vectors: sum(1 for _ in similar_pairs(vectors, None, -1.0)), 1_200),
        (lambda vectors: len(list(similar_pairs(vectors, 20, exact_up_to=100))), 12_000),
    ],
    ids=["ranked", "streamed", "approximate"],
)
def test_memory_is_bounded(consume, n):
    """The scores of all pairs would take 550 MiB."""
    vectors = clustered_rows(n, clusters=200)
    tracemalloc.start()
    try:
        assert consume(vectors) >= 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 << 20


@pytest.fixture(scope="module")
def vectors():
    vectors = clustered_rows(4000)
    vectors[3000:3020] = vectors[5]
    return vectors


class TestApproximate:
    def test_recall_of_the_best(self, vectors):
        for k in (20, 5000):
            exact = list(similar_pairs(vectors, k))
            found = list(similar_pairs(vectors, k, exact_up_to=1000))
            assert len(set(found) & set(exact)) >= 0.95 * k
            assert found == sorted(found, key=lambda pair: (-pair.score, pair.left, pair.right))

    @pytest.mark.parametrize("min_score", [0.85, 0.9])
    def test_each_pair_comes_once_with_its_exact_score(self, vectors, min_score):
        exact = {(left, right): score for left, right, score in similar_pairs(vectors, None, 0.85)}
        found = list(similar_pairs(vectors, None, min_score, exact_up_to=1000))
        places = [(left, right) for left, right, _ in found]
        assert len(set(places)) == len(places)
        assert all(exact[left, right] == score >= min_score for left, right, score in found)
        wanted = sum(score >= min_score for score in exact.values())
        assert wanted > 200
        assert len(found) >= 0.95 * wanted

    def test_reported_recall_is_that_of_the_search(self):
        """Without clusters and with few probed cells, many pairs are missed, which is reported."""
        vectors = unit_rows(4000, 32)
        notes = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cells, "MAX_PROBES", 4)
            found = set(similar_pairs(vectors, None, 0.55, exact_up_to=1000, notify=notes.append))
        exact = set(similar_pairs(vectors, None, 0.55))
        claimed = float(notes[0].partition(" recall of ")[2].partition("%")[0]) / 100
        assert found < exact
        assert claimed == pytest.approx(len(found) / len(exact), abs=0.08)

    def test_groups(self, vectors):
        groups = numpy.arange(4000) // 2
        found = list(similar_pairs(vectors, 500, groups=groups, exact_up_to=1000))
        assert len(found) == 500
        assert all(left // 2 != right // 2 for left, right, _ in found)

    @pytest.mark.parametrize("n", [0, 1, 2, 129])
    def test_few_vectors(self, n):
        vectors = unit_rows(n, 8)
        assert len(list(similar_pairs(vectors, 10, exact_up_to=1))) == min(10, n * (n - 1) // 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"min_score": 1.01},
        {"exact_up_to": -1},
        {"groups": numpy.zeros(2, int)},
        {"groups": [1.0, float("nan"), 2.0]},
        {"vectors": numpy.zeros((3, 2))},
        {"vectors": None},
    ],
)
def test_mistakes_are_reported_before_iterating(arguments):
    with pytest.raises(ArgumentError):
        similar_pairs(**{"vectors": unit_rows(3, 8), **arguments})
