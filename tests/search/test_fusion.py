"""Rank fusion."""

from __future__ import annotations

import numpy
import pytest
from scipy.stats import zscore

from semsearch import Document, Index
from semsearch.search.fusion import fused_scores, zscore_fusion
from semsearch.search.reranking import combined
from semsearch.storage.interface import ScoredPassage


def test_zscore_fusion_against_scipy():
    random = numpy.random.default_rng(0)
    dense = sorted(random.uniform(0, 1, 100), reverse=True)
    words = sorted(random.exponential(5, 30), reverse=True)
    rankings = [list(enumerate(dense)), list(enumerate(words, start=90))]
    by_meaning = zscore(dense)
    by_words = zscore([*words, *[0] * 70])
    expected = {
        item: 0.25 * (by_meaning[item] if item < 100 else by_meaning[-1])
        + 0.75 * (by_words[item - 90] if item >= 90 else by_words[-1])
        for item in range(120)
    }
    fused = zscore_fusion(rankings, [0.25, 0.75])
    assert fused == pytest.approx(expected)


@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_equal_scores_have_the_standard_score_0(count):
    """Their mean can differ from them by rounding, so that their deviation is not 0."""
    ranking = [(item, 0.1) for item in range(count)]
    almost = [(item, 2 + item * 1e-8) for item in range(count)]
    assert set(zscore_fusion([ranking, almost], [0.5, 0.5]).values()) == {0}
    assert set(combined([0.1] * count, [2.7] * count, 0.5)) == {0}


def test_edge_cases():
    sides = [{5: ScoredPassage(5, 5, 1.0)}, {4: ScoredPassage(4, 4, 1.0)}]
    assert [item for item, *_ in fused_scores(sides, 0.5, 9)] == [4, 5]  # ties: by passage
    assert fused_scores([{}, {}], 0.5, 9) == []
    assert zscore_fusion([[(5, 2.0)], [(5, 3.0)]], [0.5, 0.5]) == {5: 1}  # of (2, 0) and (3, 0)
    with pytest.raises(ValueError):  # a weight for each ranking
        zscore_fusion([[(5, 2.0)]], [0.5, 0.5])
    assert zscore_fusion([[(5, 2.0), (4, 1.0)], []], [0.5, 0.5]) == {5: 0.5, 4: -0.5}
    assert zscore_fusion([[(1, 2.0), (2, 1.0)], [(2, 2.0), (1, 1.0)]], [1, 0]) == {1: 1, 2: -1}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """An index of 400 documents, some of several passages, some without a word of the query."""
    random = numpy.random.default_rng(0)
    words = [f"word{n}" for n in range(40)]
    with Index.create(tmp_path_factory.mktemp("fusion") / "x", "hashing:16") as index:
        index.add(
            Document(str(n), " ".join(random.choice(words, random.integers(3, 12))))
            for n in range(300)
        )
        index.add(
            Document(str(n), " ".join(random.choice(words, random.integers(300, 900))))
            for n in range(300, 400)
        )
        yield index


@pytest.mark.parametrize(("dense_weight", "per_document"), [(0.5, 1), (0.1, 2), (0.0, 1), (1.0, 1)])
def test_pages_do_not_depend_on_k(texts, dense_weight, per_document):
    options = {"mode": "hybrid", "dense_weight": dense_weight, "per_document": per_document}

    def found(k, offset=0):
        hits = texts.search("word1 word2 word3", k, offset=offset, **options)
        return [(hit.document_id, hit.score, hit.passage.id, hit.scores) for hit in hits]

    every = found(1000)
    assert len({name for name, *_ in every}) == 400
    assert len(every) == (400 if per_document == 1 else 500)
    scores = [score for _, score, *_ in every]
    assert scores == sorted(scores, reverse=True)
    assert found(150) == every[:150]
    assert [hit for offset in range(0, 500, 95) for hit in found(95, offset)] == every


def test_later_hits_follow_by_their_weighted_ranks():
    """With a weight of 0.75, three by the first ranking precede one by the second."""
    sides = [
        {item: ScoredPassage(item, item, 1 / rank) for rank, item in enumerate(items, start=1)}
        for items in ([*range(1, 13), 50], [1, 2, *range(41, 53)])
    ]
    order = [item for item, *_ in fused_scores(sides, 0.75, depth=2)]
    assert order == [1, 2, *range(3, 10), 41, 10, 11, 12, 42, 50, *range(43, 50), 51, 52]
