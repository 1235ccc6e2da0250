"""How sure a figure is: bootstrap intervals, paired differences, randomisation tests.

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

#: How often is resampled. The ends of a 95 % interval then stand on 25 values each.
RESAMPLES = 1000
#: How often signs are turned in a randomisation test.
PERMUTATIONS = 9999
SEED = 0


class Interval(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """By how much one system is better than another, on the same pairs or queries."""

    value: float
    low: float  #: of the 95 % interval
    high: float
    p: float  #: two-sided: how likely so large a difference is if there were none
    p_is_bound: bool = (
        False  #: as small as so many resamples can make it: the true p may be smaller
    )

    @property
    def p_shown(self) -> str:
        """How a table shows p: ``0.012``, ``≤ 0.002`` where that is a bound, or ``< 0.001``."""
        if self.p < 0.001:
            return "< 0.001"
        return f"{'≤ ' if self.p_is_bound else ''}{self.p:.3f}"


def interval(value: float, resampled: Values) -> Interval:
    """A figure with the middle 95 % of its resampled values, shape (RESAMPLES,).

    A sample in which the figure is not defined (one gold score in all of it) says nothing.
    """
    defined = resampled[numpy.isfinite(resampled)]
    if not len(defined):
        return Interval(value, math.nan, math.nan)
    low, high = numpy.percentile(defined, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def bootstrap_difference(
    value: float, other: float, resampled: Values, other_resampled: Values
) -> Difference:
    """What lies between two figures that were resampled together.

    The p value is twice the share of resampled differences on the other side of zero, the
    observed one counted among them.
    """
    differences = resampled - other_resampled
    differences = differences[numpy.isfinite(differences)]
    observed = interval(value - other, differences)
    beyond = int(min((differences <= 0).sum(), (differences >= 0).sum()))
    p = min(1.0, 2 * (1 + beyond) / (1 + len(differences)))
    return Difference(*observed, p, p_is_bound=beyond == 0 and p < 1)


def mean_interval(values: Values) -> Interval:
    """The mean over queries, resampled over queries."""
    return interval(float(values.mean()), _resampled_mean(values))


def randomised_difference(values: Values, other: Values) -> Difference:
    """The difference of two means over the same queries, in the same order.

    Its interval is a bootstrap's over the queries; its p value is Fisher's randomisation test,
    which turns the signs of the queries' differences.
    """
    from scipy.stats import permutation_test

    differences = values - other
    observed = interval(float(differences.mean()), _resampled_mean(differences))
    if not differences.any():
        return Difference(*observed, p=1.0)
    test = permutation_test(
        (differences,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=1000,
        rng=SEED,
    )
    # Few queries have few signs: SciPy turns them in all ways, and p is exact.
    is_exact = len(test.null_distribution) < PERMUTATIONS
    is_least = test.pvalue <= 2 / (1 + PERMUTATIONS)
    return Difference(*observed, float(test.pvalue), p_is_bound=bool(is_least and not is_exact))


def _resampled_mean(values: Values) -> Values:
    if len(values) < 2:
        return numpy.full(RESAMPLES, values.mean())
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,), numpy.mean, n_resamples=RESAMPLES, method="percentile", batch=100, rng=SEED
    )
    distribution: Values = found.bootstrap_distribution
    return distribution


def resampled_spearman(scores: Sequence[Values], gold: Values) -> NDArray[numpy.float64]:
    """Spearman's correlation of each system on the same bootstrap samples of the pairs.

    Args:
        scores: a system's scores each, shape (pairs,).
        gold: shape (pairs,).

    Returns:
        Shape (systems, RESAMPLES); NaN where a sample has no correlation.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    def statistic(*samples: Values, axis: int) -> Values:
        del axis  # the last one
        *rated, wanted = samples
        return numpy.stack([spearman_rows(one, wanted) for one in rated])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # NaN in a sample; see `interval`
        found = bootstrap(
            (*scores, gold),
            statistic,
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            method="percentile",
            batch=100,
            rng=SEED,
        )
    return numpy.asarray(found.bootstrap_distribution)
