"""Uncertainty of results: bootstrap intervals, paired differences, randomisation tests.

Efron & Tibshirani 1993 for the bootstrap; Smucker, Allan & Carterette 2007 for paired tests of
retrieval systems.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.correlations import Values, spearman_rows

#: Bootstrap resamples: 25 values lie outside each end of a 95 % interval.
RESAMPLES = 1000
#: Random sign flips in a randomisation test.
PERMUTATIONS = 9999
SEED = 0


class Interval(NamedTuple):
    """A value with its 95 % interval; its ends are NaN if it is undefined, as for one query."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """The difference between two systems on the same pairs or queries."""

    value: float
    low: float  #: of the 95 % interval
    high: float
    p: float  #: two-sided p value; NaN if the difference is undefined
    p_is_bound: bool = False  #: whether `p` is an upper bound, the least that the resamples allow

    @property
    def p_shown(self) -> str:
        """The p value for tables: ``0.012``, ``≤ 0.002`` for a bound, or ``< 0.001``."""
        if self.p < 0.001:
            return "< 0.001"
        return f"{'≤ ' if self.p_is_bound else ''}{self.p:.3f}"


def interval(value: float, resampled: Values) -> Interval:
    """A value with the middle 95 % of its resampled values, shape (RESAMPLES,).

    Samples in which the value is undefined (a constant gold score) are ignored.
    """
    defined = resampled[numpy.isfinite(resampled)]
    if not len(defined):
        return Interval(value, math.nan, math.nan)
    low, high = numpy.percentile(defined, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def bootstrap_difference(
    value: float, other: float, resampled: Values, other_resampled: Values
) -> Difference:
    """The difference between two values that were resampled together.

    The p value is twice the share of resampled differences on the other side of zero, with the
    observed difference counted among them; NaN if the difference is undefined.
    """
    differences = resampled - other_resampled
    differences = differences[numpy.isfinite(differences)]
    observed = interval(value - other, differences)
    if math.isnan(observed.value) or not len(differences):
        return Difference(*observed, p=math.nan)
    beyond = int(min((differences <= 0).sum(), (differences >= 0).sum()))
    p = min(1.0, 2 * (1 + beyond) / (1 + len(differences)))
    return Difference(*observed, p, p_is_bound=beyond == 0 and p < 1)


def mean_interval(values: Values) -> Interval:
    """The mean over queries, resampled over queries."""
    return interval(float(values.mean()), _resampled_mean(values))


def randomised_difference(values: Values, other: Values) -> Difference:
    """The difference between two means over the same queries, in the same order.

    The interval is from a bootstrap over the queries, the p value from Fisher's randomisation
    test, which flips the signs of the differences.
    """
    from scipy.stats import permutation_test

    differences = values - other
    observed = interval(float(differences.mean()), _resampled_mean(differences))
    changed = differences[differences != 0]
    if len(changed) < 2:  # both signs are as extreme
        return Difference(*observed, p=1.0)
    if 2 ** len(changed) <= PERMUTATIONS:  # SciPy then enumerates all sign flips, and p is exact
        differences = changed
    test = permutation_test(
        (differences,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=1000,
        rng=SEED,
    )
    is_exact = len(test.null_distribution) < PERMUTATIONS
    is_smallest = test.pvalue <= 2 / (1 + PERMUTATIONS)
    return Difference(*observed, float(test.pvalue), p_is_bound=bool(is_smallest and not is_exact))


def _resampled_mean(values: Values) -> Values:
    if len(values) < 2:
        return numpy.full(RESAMPLES, math.nan)
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,), numpy.mean, n_resamples=RESAMPLES, method="percentile", batch=100, rng=SEED
    )
    distribution: Values = found.bootstrap_distribution
    return distribution


def resampled_spearman(
    scores: Sequence[Values], gold: Values, rng: numpy.random.Generator | int = SEED
) -> NDArray[numpy.float64]:
    """Spearman's correlation of each system on the same bootstrap samples of the pairs.

    Args:
        scores: the scores of each system, shape (pairs,).
        gold: shape (pairs,).
        rng: draws the samples.

    Returns:
        Shape (systems, RESAMPLES); NaN where the correlation is undefined.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    def statistic(*samples: Values, axis: int) -> Values:
        del axis  # the last one
        *systems, golds = samples
        return numpy.stack([spearman_rows(system, golds) for system in systems])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # NaN is handled by `interval`
        found = bootstrap(
            (*scores, gold),
            statistic,
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            method="percentile",
            batch=100,
            rng=rng,
        )
    return numpy.asarray(found.bootstrap_distribution)
