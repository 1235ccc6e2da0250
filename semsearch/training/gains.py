"""Gains from training on the same queries, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from semsearch.evaluation.statistics import Values, spearman

#: The largest p value of a significant gain, as of one end of a 95 % interval.
SIGNIFICANT = 0.025


class Gain(NamedTuple):
    """The mean of a measure over the same queries, before and after training."""

    measure: str  #: name, such as MRR
    before: float
    after: float
    low: float  #: lower end of the 95 % interval of the difference
    high: float  #: upper end of that interval
    queries: int
    p: float = 0.0  #: one-sided, of a randomisation test

    @property
    def is_significant(self) -> bool:
        """Whether the whole interval is above zero, and chance alone rarely raises the mean so.

        Intervals of a few queries are too narrow; fewer than six are never significant.
        """
        return self.low > 0 and self.p <= SIGNIFICANT

    def __str__(self) -> str:
        return (
            f"{self.measure} {self.before:.3f} before, {self.after:.3f} after "
            f"({self.after - self.before:+.3f}, 95 % interval {self.low:+.3f} to {self.high:+.3f}, "
            f"{self.queries:,} held-out queries)"
        )


def gain(measure: str, before: Values, after: Values, seed: int) -> Gain:
    """The difference in means with its 95 % interval, by a bootstrap over paired queries.

    Its p value is that of Fisher's randomisation test, which flips the signs of the differences
    (Smucker, Allan & Carterette 2007).

    Args:
        measure: name of the measure.
        before: the value of each query before training, shape (n,).
        after: the values after training, in the same order.
        seed: of the bootstrap.
    """
    from scipy.stats import bootstrap, permutation_test

    difference = after - before
    interval = bootstrap(
        (difference,), numpy.mean, method="percentile", rng=numpy.random.default_rng(seed)
    ).confidence_interval
    test = permutation_test(
        (difference,),
        numpy.mean,
        permutation_type="samples",
        alternative="greater",
        batch=1000,
        rng=numpy.random.default_rng(seed),
    )
    return Gain(
        measure,
        float(before.mean()),
        float(after.mean()),
        float(interval.low),
        float(interval.high),
        len(difference),
        float(test.pvalue),
    )


def spearman_gain(before: Values, after: Values, gold: Sequence[float]) -> Gain:
    """The difference in Spearman's correlation with gold scores, times 100, by a bootstrap.

    Args:
        before: the score of each pair before training, shape (n,).
        after: the scores after training, in the same order.
        gold: the human scores, in the same order.
    """
    from scipy.stats import bootstrap

    def difference(first: Values, second: Values, wanted: Values) -> float:
        return float(100 * (spearman(second, wanted) - spearman(first, wanted)))

    targets = numpy.asarray(gold, numpy.float64)
    interval = bootstrap(
        (before, after, targets),
        difference,
        paired=True,
        vectorized=False,
        n_resamples=999,
        method="percentile",
        rng=numpy.random.default_rng(0),
    ).confidence_interval
    return Gain(
        "Spearman x 100",
        100 * spearman(before, targets),
        100 * spearman(after, targets),
        float(interval.low),
        float(interval.high),
        len(before),
    )
