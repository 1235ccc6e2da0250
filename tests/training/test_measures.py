"""Scoring of models, with synthetic vectors and scores."""

from __future__ import annotations

import numpy
import pytest

from semsearch.training.encoder import plain_encode, score_encoder
from semsearch.training.examples import Examples, Kind
from semsearch.training.measures import NDCG, gain

ANGLES = {"a": 0, "b": 10, "c": 30, "d": 90, "e": 100, "f": 180}  # degrees on a circle


class Circle:
    """A bi-encoder of two dimensions."""

    def encode(self, texts, normalize_embeddings, **_):
        turns = numpy.radians([ANGLES[text] for text in texts])
        length = 1 if normalize_embeddings else 2
        return length * numpy.stack([numpy.cos(turns), numpy.sin(turns)], axis=1)


def examples(kind, *rows, targets=(), labels=()):
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    return Examples("x", kind, columns, list(targets), labels)


SCORED = [("a", "b"), ("a", "d"), ("b", "d"), ("a", "f")]  # cosines 0.98, 0, 0.17, -1


@pytest.mark.parametrize(
    ("kind", "rows", "targets", "expected"),
    [
        # By hand: ranks of the cosines 4 2 3 1, of the gold scores 4 3 2 1: 1 - 6 * 2 / (4 * 15).
        (Kind.SCORED, SCORED, (1, 0.6, 0.4, 0), 80),
        (Kind.SCORED, SCORED, (0, 0.4, 0.6, 1), -80),
        (Kind.TRIPLETS, ["abc", "adc", "dea", "fed"], (), 75),
        # Nearest to a is b, one of its two, to f e, and to c not its own d but b.
        (Kind.POSITIVE, ["ad", "cd", "fe", "ab"], (), 75),
        # By hand: yes at ranks 1 and 3 of the cosines: (1 / 1 + 2 / 3) / 2.
        (Kind.LABELLED, SCORED, (1, 1, 0, 0), 100 * (1 + 2 / 3) / 2),
    ],
)
def test_scores_of_a_bi_encoder(kind, rows, targets, expected):
    labels = ("no", "yes") if kind is Kind.LABELLED else ()
    found = examples(kind, *rows, targets=targets, labels=labels)
    assert score_encoder(plain_encode(Circle()), found) == pytest.approx(expected)


def test_a_gain_is_significant_if_chance_alone_rarely_explains_it():
    before = numpy.random.default_rng(0).random(40)
    assert not gain("x", NDCG, before, before).is_significant
    assert not gain("x", NDCG, before, before[::-1]).is_significant
    result = gain("x", NDCG, before, before + 0.1)
    assert result.is_significant
    assert (result.low, result.high) == pytest.approx((10, 10))
    assert not gain("x", NDCG, before[:5], before[:5] + 0.1).is_significant  # p is 1/16
