"""Clustering: planted groups are found, communities equal those of sentence-transformers."""

from __future__ import annotations

import numpy
import pytest
from sklearn.metrics import adjusted_rand_score
from vectors import planted, unit_rows

from semsearch.errors import ArgumentError
from semsearch.explore import keywords
from semsearch.explore.clusters import ClusterMethod, cluster


def grouped(vectors, *arguments, **options):
    return cluster(vectors, [""] * len(vectors), *arguments, **options)


def members(clustering):
    return [set(group.members) for group in clustering.clusters]


class TestKMeans:
    @pytest.mark.parametrize("seed", range(2))
    def test_planted_groups_are_recovered(self, seed):
        vectors, labels = planted(seed=seed)
        found = grouped(vectors, 12, seed=seed)
        assert found.method is ClusterMethod.KMEANS
        assert adjusted_rand_score(labels, found.labels()) == 1
        sizes = [len(group.members) for group in found.clusters]
        assert sizes == sorted(sizes, reverse=True)
        assert found.ungrouped == ()

    def test_same_seed_gives_the_same_groups(self):
        first, again, other = (grouped(unit_rows(200, 16), seed=seed) for seed in (1, 1, 2))
        assert first == again
        assert first != other
        assert len(first.clusters) == 10  # by default, √(200/2)

    @pytest.mark.parametrize("n", [5, 6, 1000])
    def test_more_groups_than_texts(self, n):
        found = grouped(numpy.eye(5, 8, dtype=numpy.float32), n)
        assert members(found) == [{0}, {1}, {2}, {3}, {4}]


class TestCommunities:
    @pytest.mark.parametrize(("min_score", "min_size"), [(0.3, 20), (0.5, 5), (0.7, 5), (0.6, 2)])
    def test_communities_equal_those_of_sentence_transformers(self, min_score, min_size):
        from sentence_transformers.util import community_detection

        vectors, _ = planted(spread=0.9, seed=min_size)
        expected = community_detection(vectors, min_score, min_size)
        found = grouped(vectors, min_score=min_score, min_size=min_size)
        assert found.method is ClusterMethod.COMMUNITIES
        assert sorted(map(sorted, members(found))) == sorted(map(sorted, expected))
        assert set(found.ungrouped) == set(range(400)) - set().union(*expected)
        assert [label is None for label in found.labels()] == [
            row in found.ungrouped for row in range(400)
        ]

    def test_rounded_scores_are_compared_with_the_minimum(self):
        vectors = numpy.array([[1, 0], [0.8, 0.6], [0.8, -0.6]], numpy.float32)
        assert members(grouped(vectors, min_score=0.8, min_size=2)) == [{0, 1, 2}]
        assert members(grouped(vectors, min_score=0.800001, min_size=2)) == []


class TestGroups:
    @pytest.mark.parametrize(
        "options", [{"n": 4}, {"min_score": -1}, {"min_score": 0.5}, {"min_score": 1}]
    )
    def test_identical_texts(self, options):
        found = grouped(numpy.repeat(unit_rows(1, 24), 100, axis=0), **options)
        assert members(found) == [set(range(100))]
        assert found.clusters[0].cohesion == 1

    def test_by_hand(self):
        vectors = numpy.array([[0, 1], [1, 0], [0.6, 0.8], [1, 0], [1, 0]], numpy.float32)
        large, small = grouped(vectors, 2).clusters
        assert (large.label, large.members, large.scores) == (1, (1, 3, 4), (1.0, 1.0, 1.0))
        # The centroid is (0.6, 1.8), of length √3.6; the cosines are 1.8/√3.6, twice.
        assert (small.label, small.members, small.scores) == (2, (0, 2), (0.948683, 0.948683))
        assert small.central == 0
        assert small.cohesion == 0.948683
        # Opposites have no centroid.
        (group,) = grouped(numpy.array([[1, 0], [-1, 0]], numpy.float32), 1).clusters
        assert group.scores == (0.0, 0.0)

    @pytest.mark.parametrize("options", [{}, {"n": 3}, {"min_score": 0.5}])
    def test_no_texts(self, options):
        found = cluster(numpy.empty((0, 8), numpy.float32), [], **options)
        assert found[1:] == ((), ())
        assert found.labels() == []

    @pytest.mark.parametrize(
        "options",
        [
            {"n": 0},
            {"n": 2, "min_score": 0.5},
            {"min_size": 2},
            {"min_score": 1.5},
            {"min_score": 0.5, "min_size": 0},
        ],
    )
    def test_invalid_arguments_are_rejected(self, options):
        with pytest.raises(ArgumentError):
            grouped(numpy.eye(3, dtype=numpy.float32), **options)

    @pytest.mark.parametrize(
        "vectors",
        [numpy.eye(2), numpy.ones(9), 2 * numpy.eye(3), numpy.diag([1.0, 1.0, numpy.nan])],
    )
    def test_invalid_vectors_are_rejected(self, vectors):
        with pytest.raises(ArgumentError):
            cluster(vectors, ["a"] * 3, 2)


TOPICS = {
    "sea": ["The ship left the harbour.", "A ship and the captain.", "The captain of the harbour."],
    "bread": ["The dough is in the oven.", "An oven for the dough.", "The baker has the oven."],
    "none": ["The thing of 1974.", "The end of it.", "And the rest."],
}
TEXTS = [text for topic in TOPICS.values() for text in topic]


class TestWords:
    def test_keywords_are_shared_in_a_group_and_rare_elsewhere(self):
        groups = [numpy.arange(3), numpy.arange(3, 6)]
        # captain, harbour and ship are in two texts each; oven is in all three, dough in two.
        assert keywords.keywords(TEXTS, groups, 9) == [
            ("captain", "harbour", "ship"),
            ("oven", "dough"),
        ]
        assert keywords.keywords(TEXTS, groups, 1) == [("captain",), ("oven",)]
        assert keywords.keywords(TEXTS, groups, 0) == [(), ()]

    def test_ratio_equals_dunnings(self):
        from scipy.stats import chi2_contingency

        often, everywhere, size, n = numpy.array([3.0, 2, 0, 5]), numpy.array([3.0, 9, 4, 5]), 5, 30
        ratios = keywords._ratios(often, everywhere, size, n)
        for ratio, inside, total in zip(ratios, often, everywhere, strict=True):
            table = [[inside, size - inside], [total - inside, n - size - total + inside]]
            expected = chi2_contingency(table, correction=False, lambda_="log-likelihood")
            assert abs(ratio) == pytest.approx(expected.statistic)
        assert (ratios > 0).tolist() == [True, True, False, True]

    def test_words_of_other_scripts_are_whole(self):
        texts = ["हिन्दी किताब", "हिन्दी 7", "e\u0301te\u0301", "été", "北京大学", "我在北京"]
        groups = [numpy.arange(2), numpy.arange(2, 4), numpy.arange(4, 6)]
        assert keywords.keywords(texts, groups, 1) == [("हिन्दी",), ("été",), ("北京",)]

    def test_function_words_are_left_out(self):
        """English ones always, others if given; content words stay."""
        texts = ["the fire of the Feuer und", "the fire of the Feuer und", "a sea", "a sea"]
        groups = [numpy.arange(2), numpy.arange(2, 4)]
        assert keywords.keywords(texts, groups, 9) == [("feuer", "fire", "und"), ("sea",)]
        assert keywords.keywords(texts, groups, 9, {"und"}) == [("feuer", "fire"), ("sea",)]

    def test_stop_words_are_compared_without_case(self):
        vectors = numpy.eye(2, dtype=numpy.float32)[[0, 0, 1, 1]]
        texts = ["Maße und Gewichte", "Gewichte, Maße", "Meer", "Meer"]
        found = cluster(vectors, texts, 2, stop_words=["MASSE"])
        assert [group.words for group in found.clusters] == [("gewichte",), ("meer",)]
        assert cluster(vectors, texts, 2, stop_words=frozenset({"MASSE", "und"})) == found
        with pytest.raises(ArgumentError):
            cluster(vectors, texts, 2, stop_words="und")
