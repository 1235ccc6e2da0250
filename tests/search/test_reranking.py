"""Reranking: depth, order and time budget."""

from __future__ import annotations

import math

import numpy
import pytest
from scipy.stats import zscore

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.search import reranking

COUNT = 60


class Counting:
    """Prefers the last passages, and takes a second for each."""

    def __init__(self, clock=None):
        self.read = []
        self.clock = clock

    def score(self, query, passages):
        self.read.append(len(passages))
        if self.clock:
            self.clock.now += len(passages)
        return numpy.array([float(text.split()[1]) for text in passages])


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(reranking, "time", clock)
    return clock


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        # Longer texts are farther from the query, so "item 0" ranks first.
        index.add(Document(str(n), f"item {n}" + " word" * n) for n in range(COUNT))
        yield index


def ids(hits):
    return [int(hit.document_id) for hit in hits]


def test_depth(index):
    reranker = Counting()
    first = index.search("item", COUNT)
    hits = index.search("item", COUNT, rerank=reranker, rerank_depth=20)
    assert reranker.read == [20]
    assert hits.reranked == 20
    assert ids(hits[:20]) == sorted(ids(first[:20]), reverse=True)
    assert ids(hits[20:]) == ids(first[20:])
    cosines = {hit.document_id: hit.score for hit in first}
    assert all(hit.scores.cosine == cosines[hit.document_id] for hit in hits)
    assert [hit.scores.reranked for hit in hits[:20]] == [hit.score for hit in hits[:20]]
    assert {hit.scores.reranked for hit in hits[20:]} == {None}
    assert [hit.score for hit in hits[20:]] == [hit.scores.cosine for hit in hits[20:]]
    assert index.search("item", 3).reranked is None


@pytest.mark.parametrize(
    ("seconds", "blocks"),
    [
        (1000, [8, 8, 16, 28]),  # each as many as all before it, to the end
        (40, [8, 8, 16, 8]),
        (20, [8, 8, 4]),
        (9, [8, 1]),
        (8, [8]),
        (0, [8]),  # the speed is unknown before the first block
    ],
)
def test_budget(index, clock, seconds, blocks):
    reranker = Counting(clock)
    hits = index.search("item", COUNT, rerank=reranker, rerank_budget=seconds)
    assert reranker.read == blocks
    assert hits.reranked == sum(blocks)
    first = ids(index.search("item", COUNT))
    read = sum(blocks)
    assert ids(hits) == sorted(first[:read], reverse=True) + first[read:]


def test_scores_of_both_stages_are_combined(index):
    """0.75 and 0.25 times the z-scores of the stages."""
    reranker = Counting()
    reranker.first_stage_weight = 0.75
    first = index.search("item", 3)
    hits = index.search("item", 3, rerank=reranker, rerank_depth=3)
    cosines, own = [hit.score for hit in first], [0.0, 1.0, 2.0]
    combined = 0.75 * zscore(cosines) + 0.25 * zscore(own)
    assert ids(hits) == sorted((0, 1, 2), key=lambda n: -combined[n])
    assert [hit.score for hit in hits] == pytest.approx([combined[n] for n in ids(hits)])
    assert [hit.scores.reranked for hit in hits] == ids(hits)
    assert [hit.scores.cosine for hit in hits] == [cosines[n] for n in ids(hits)]


def test_the_minimum_score_is_one_of_the_reranker(index):
    """The hits that it did not read have scores on another scale."""
    scores = [hit.score for hit in index.search("item", COUNT, rerank=Counting(), rerank_depth=5)]
    assert scores[:5] == [4.0, 3.0, 2.0, 1.0, 0.0]
    assert scores[5] > 0.0
    for least, expected in ((-1, [4, 3, 2, 1, 0]), (0.1, [4, 3, 2, 1]), (2, [4, 3, 2]), (9, [])):
        options = {"rerank": Counting(), "rerank_depth": 5, "min_score": least}
        assert ids(index.search("item", COUNT, **options)) == expected
        assert ids(index.search("item", COUNT, **options, collapse_duplicates=True)) == expected


@pytest.mark.parametrize("scores", [[1.0], [1.0, math.nan, 2.0], [[1.0]] * 3, None])
def test_invalid_scores_are_refused(index, scores):
    class Broken(Counting):
        def score(self, query, passages):
            return scores

    with pytest.raises(ArgumentError):
        index.search("item", 3, rerank=Broken(), rerank_depth=3)


def test_the_reranker_reads_the_query_without_operators(index):
    class Listening(Counting):
        def score(self, query, passages):
            self.query = query
            return super().score(query, passages)

    for mode, read in (("semantic", '"item" -car'), ("bm25", "item"), ("hybrid", "item")):
        reranker = Listening()
        hits = index.search('"item" -car', mode=mode, rerank=reranker)
        assert (reranker.query, hits.query) == (read, '"item" -car')
