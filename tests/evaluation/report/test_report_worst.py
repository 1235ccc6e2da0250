"""The worst pairs and queries; expected values by hand."""

from __future__ import annotations

import numpy
import pytest

from semsearch.evaluation.datasets import RetrievalSet, ScoredPair
from semsearch.evaluation.report.worst import worst_pairs, worst_queries


def test_worst_pairs_by_hand():
    # Ranks by gold 1 2 3 4 5, by score 4 2 3 5 1: distances 3 0 0 1 4, at most 4 possible.
    pairs = [ScoredPair(name, name, gold) for name, gold in zip("abcde", range(5), strict=True)]
    worst = worst_pairs(pairs, numpy.array([0.8, 0.2, 0.3, 0.9, 0.1]), count=3)
    found = [(one.pair.left, one.score, one.gold_percentile, one.score_percentile) for one in worst]
    assert found == [("e", 0.1, 100, 0), ("a", 0.8, 0, 75), ("d", 0.9, 75, 100)]


def test_equal_values_share_a_rank():
    # Ranks by gold 2 2 2 4, by score 1 2 3 4.
    pairs = [ScoredPair(name, name, gold) for name, gold in zip("abcd", (0, 0, 0, 1), strict=True)]
    worst = worst_pairs(pairs, numpy.array([0.1, 0.2, 0.3, 0.4]))
    assert [one.pair.left for one in worst] == ["a", "c", "b", "d"]  # ties keep their order
    assert worst[0].gold_percentile == worst[1].gold_percentile == pytest.approx(100 / 3)


def test_worst_queries_by_hand():
    queries = {name: name for name in ("good", "late", "never", "later", "unanswered")}
    qrels = {name: {"right": 1, "wrong": 0} for name in queries}
    run = {
        "good": {"right": 1.0},
        "late": {"wrong": 3.0, "right": 2.0},
        "never": {"wrong": 1.0},
        "later": {"wrong": 3.0, "other": 2.0, "right": 1.0},
    }
    values = numpy.array([100.0, 0, 0, 0, 0])
    worst = worst_queries(RetrievalSet("made", {}, queries, qrels), run, values, count=4)
    assert [(one.query, one.first_relevant) for one in worst] == [
        ("never", None),
        ("unanswered", None),
        ("later", 3),
        ("late", 2),
    ]
