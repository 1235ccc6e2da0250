"""What training did to the same queries, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from semsearch.correlations import Values, spearman


class Gain(NamedTuple):
    """The difference that training made to the mean of a measure over the same queries."""

    measure: str  #: its name, such as MRR
    before: float
    after: float
    low: float  #: of the 95 % interval of the difference of the means
    high: float
    queries: int

    @property
    def is_certain(self) -> bool:
        """Whether it is above zero beyond what the choice of the queries explains."""
        return self.low > 0

    def __str__(self) -> str:
        return (
            f"{self.measure} {self.after:.3f} after {self.before:.3f} "
            f"({self.after - self.before:+.3f}, 95 % interval {self.low:+.3f} to {self.high:+.3f}, "
            f"{self.queries:,} held-out queries)"
        )


def gain(measure: str, before: Values, after: Values, seed: int) -> Gain:
    """The difference of the means with its interval, by the bootstrap over paired queries.

    Args:
        measure: its name.
        before: the value of each query, shape (n,).
        after: the same, in the same order.
        seed: of the bootstrap.
    """
    from scipy.stats import bootstrap

    difference = after - before
    interval = bootstrap(
        (difference,), numpy.mean, method="percentile", rng=numpy.random.default_rng(seed)
    ).confidence_interval
    return Gain(
        measure,
        float(before.mean()),
        float(after.mean()),
        float(interval.low),
        float(interval.high),
        len(difference),
    )


def spearman_gain(before: Values, after: Values, gold: Sequence[float]) -> Gain:
    """The difference of Spearman's correlations with the gold scores, times 100, by the bootstrap.

    Args:
        before: the score of each pair, shape (n,).
        after: the same, in the same order.
        gold: the same by people.
    """
    from scipy.stats import bootstrap

    def difference(first: Values, second: Values, wanted: Values) -> float:
        return 100 * (spearman(second, wanted) - spearman(first, wanted))

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
