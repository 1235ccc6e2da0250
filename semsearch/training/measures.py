"""How good a model is on a set of examples, and what its training gained; higher is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.evaluation.statistics import (
    Values,
    bootstrap_difference,
    randomised_difference,
    resampled,
    spearman,
)
from semsearch.training.examples import Examples, Kind

#: The largest two-sided p value of a significant gain.
SIGNIFICANT = 0.05

Vectors = NDArray[numpy.float32]
Encode = Callable[[list[str]], Any]


class Measure(NamedTuple):
    """A measure: its name, and its value from the outcomes and gold scores of examples.

    The examples are along the last axis of both.
    """

    name: str
    score: Callable[[Values, Values], Any]


def mean(outcomes: Values, gold: Values) -> Any:
    """The mean of the outcomes, in %."""
    del gold
    return 100 * outcomes.mean(axis=-1)


def _spearman(outcomes: Values, gold: Values) -> Any:
    """Spearman's rank correlation x 100; 0 if outcomes are constant or not finite."""
    return numpy.nan_to_num(100 * spearman(outcomes, gold))


@numpy.vectorize(signature="(n),(n)->()")
def _average_precision(outcomes: Values, gold: Values) -> float:
    """The average precision x 100 of the pairs labelled yes, ranked by their cosine."""
    from sklearn.metrics import average_precision_score

    if not gold.any():  # a resample without yes
        return float("nan")
    return 100 * float(average_precision_score(gold, numpy.nan_to_num(outcomes)))


MEASURES = {
    Kind.SCORED: Measure("Spearman x 100", _spearman),
    Kind.LABELLED: Measure("average precision x 100", _average_precision),
    Kind.POSITIVE: Measure("positive text ranked first, %", mean),
    Kind.TRIPLETS: Measure("positive text nearer, %", mean),
}
ACCURACY = "accuracy of the classifier, %"
NDCG = Measure("nDCG@10 x 100", mean)


def gold_of(examples: Examples) -> Values:
    """The gold scores of examples, shape (n,); zeros for those that have none."""
    targets = examples.targets or numpy.zeros(len(examples))
    return numpy.asarray(targets, numpy.float64)


def columns_of(encode: Encode, examples: Examples) -> list[Vectors]:
    """The vectors of each column of texts."""
    return [numpy.asarray(encode(column), numpy.float32) for column in examples.texts]


def encoder_outcomes(encode: Encode, examples: Examples) -> Values:
    """What an encoder gives for each example, shape (n,).

    The cosines of pairs with gold scores or labels; 1 or 0 for a positive text that is, or is not,
    nearer than the negative one, or nearest of all.
    """
    left, right, *others = columns_of(encode, examples)
    if examples.kind is Kind.POSITIVE:
        return _ranked_first(examples, left, right)
    cosines: Values = (left * right).sum(axis=1, dtype=numpy.float64)
    if examples.kind is Kind.TRIPLETS:
        cosines = (cosines > (left * others[0]).sum(axis=1, dtype=numpy.float64)).astype(float)
    return cosines


def cosine_to_teacher(encode: Encode, examples: Examples, wanted: Vectors) -> float:
    """The mean cosine x 100 of all columns of texts to the teacher's unit vectors."""
    found = [(vectors * wanted).sum(axis=1).mean() for vectors in columns_of(encode, examples)]
    return 100 * float(numpy.mean(found))


def _ranked_first(examples: Examples, anchors: Vectors, positives: Vectors) -> Values:
    """Whether a positive of each anchor is the nearest of all; equal texts count as one."""
    from sentence_transformers.util import semantic_search

    left, right = examples.texts
    pairs = set(zip(left, right, strict=True))
    row_of = {text: row for row, text in enumerate(right)}
    texts, candidates = list(row_of), positives[list(row_of.values())]
    found = semantic_search(anchors, candidates, top_k=1)
    nearest = [texts[int(best["corpus_id"])] for (best,) in found]
    return numpy.array([pair in pairs for pair in zip(left, nearest, strict=True)], float)


def ndcg(rankings: Sequence[Sequence[str]], judged: Sequence[Mapping[str, int]]) -> Values:
    """NDCG@10 of rankings of ids, best first, by ir-measures; shape (n,)."""
    from ir_measures import nDCG

    run = {
        str(number): {name: -float(rank) for rank, name in enumerate(names)}
        for number, names in enumerate(rankings)
    }
    qrels = {str(number): dict(relevance) for number, relevance in enumerate(judged)}
    found = {one.query_id: one.value for one in (nDCG @ 10).iter_calc(qrels, run)}
    return numpy.array([found.get(str(number), 0.0) for number in range(len(rankings))])


class Measured(NamedTuple):
    """A score, with its data and measure."""

    data: str
    measure: str
    score: float
    before: float | None = None  #: of the base model, if it has the same task
    low: float | None = None  #: of the 95 % interval of the difference
    high: float | None = None
    p: float | None = None  #: two-sided, of the difference

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the gain is above zero, and chance alone rarely explains it.

        Intervals of a few queries are too narrow; fewer than six are never significant.
        """
        return (self.low or 0.0) > 0 and self.p is not None and self.p <= SIGNIFICANT

    def __str__(self) -> str:
        gained = ""
        if self.before is not None:
            gained = f", before {self.before:.2f}"
            if self.low is not None and self.high is not None:
                word = f"gain {self.score - self.before:+.2f}" if self.low > 0 else "no gain"
                gained += f", {word}, 95 % interval {self.low:+.2f} to {self.high:+.2f}"
        return f"{self.data}: {self.score:.2f}{gained} ({self.measure})"


def gain(
    data: str, measure: Measure, before: Values, after: Values, gold: Values | None = None
) -> Measured:
    """A score, with the difference that the training made and its 95 % interval.

    Outcomes have shape (n,) and the same order; `gold` is None if the measure needs none.
    """
    gold = numpy.zeros(len(before)) if gold is None else gold
    first, second = float(measure.score(before, gold)), float(measure.score(after, gold))
    if measure.score is mean:
        found = randomised_difference(100 * after, 100 * before)
    else:

        def both(old: Values, new: Values, golds: Values, axis: int) -> Values:
            del axis  # the last one
            return numpy.stack([measure.score(one, golds) for one in (old, new)])

        old_values, new_values = resampled(both, [before, after, gold])
        found = bootstrap_difference(second, first, new_values, old_values)
    return Measured(data, measure.name, second, first, found.low, found.high, found.p)
