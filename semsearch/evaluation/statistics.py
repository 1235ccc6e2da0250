"""Correlations, and their uncertainty: bootstrap intervals and randomisation tests.

Efron & Tibshirani 1993 for the bootstrap; Smucker, Allan & Carterette 2007 for paired tests of
retrieval systems.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

#: Scores, one for each pair or query.
Values: TypeAlias = NDArray[numpy.float64]

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

    @property
    def shown(self) -> str:
        """For tables: ``82.03 [79.91, 83.92]``, a value without an interval, or ``undefined``."""
        value = shown_number(self.value)
        return value if math.isnan(self.low) else f"{value} [{self.low:z.2f}, {self.high:z.2f}]"


class Difference(NamedTuple):
    """The difference between two systems on the same pairs or queries."""

    value: float
    low: float  #: of the 95 % interval
    high: float
    p: float  #: two-sided p value; NaN if the difference is undefined
    p_is_bound: bool = False  #: whether `p` is an upper bound, the least that the resamples allow

    @property
    def shown(self) -> str:
        """For tables: ``+1.20 [-0.34, +2.71]``, or ``undefined``."""
        value = shown_number(self.value, "+")
        return value if math.isnan(self.low) else f"{value} [{self.low:+z.2f}, {self.high:+z.2f}]"

    @property
    def p_shown(self) -> str:
        """For tables: ``0.012``, ``≤ 0.002`` for a bound, ``< 0.001``, or nothing if undefined."""
        if math.isnan(self.p):
            return ""
        if self.p < 0.001:
            return "< 0.001"
        return f"{'≤ ' if self.p_is_bound else ''}{self.p:.3f}"


def shown_number(value: float, sign: str = "") -> str:
    """A number with two decimals, or ``undefined``."""
    return "undefined" if math.isnan(value) else f"{value:{sign}z.2f}"


def pearson(scores: Values, gold: Values) -> Any:
    """Pearson's correlation along the last axis; NaN if either side is constant."""
    from scipy.stats import ConstantInputWarning, pearsonr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        return pearsonr(scores, gold, axis=-1).statistic


def spearman(scores: Values, gold: Values) -> Any:
    """Spearman's rank correlation along the last axis; NaN if either side is constant."""
    from scipy.stats import rankdata

    return pearson(rankdata(scores, axis=-1), rankdata(gold, axis=-1))


def resampled(
    statistic: Callable[..., Values],
    samples: Sequence[Values],
    rng: numpy.random.Generator | int = SEED,
) -> Values:
    """A statistic of bootstrap samples, which draw the same pairs or queries of all `samples`.

    Args:
        statistic: called with each of the samples and ``axis=-1``.
        samples: shape (pairs,) each.
        rng: draws the samples.

    Returns:
        Shape (..., RESAMPLES); NaN where the statistic is undefined.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # NaN is handled by `interval`
        found = bootstrap(
            samples,
            statistic,
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            method="percentile",
            batch=100,
            rng=rng,
        )
    return numpy.asarray(found.bootstrap_distribution)


def resampled_spearman(
    scores: Sequence[Values], gold: Values, rng: numpy.random.Generator | int = SEED
) -> Values:
    """Spearman's correlation of each system on the same samples, shape (systems, RESAMPLES)."""

    def statistic(*samples: Values, axis: int) -> Values:
        del axis  # the last one
        *systems, golds = samples
        return numpy.stack([spearman(system, golds) for system in systems])

    return resampled(statistic, [*scores, gold], rng)


def interval(value: float, resampled: Values) -> Interval:
    """A value with the middle 95 % of its resampled values, shape (RESAMPLES,).

    Samples in which the value is undefined (a constant gold score) are ignored.
    """
    defined = resampled[numpy.isfinite(resampled)]
    if not len(defined):
        return Interval(value, math.nan, math.nan)
    low, high = numpy.percentile(defined, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def mean_interval(values: Values) -> Interval:
    """The mean over queries, resampled over queries; a single one has no interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    return interval(mean, resampled(numpy.mean, [values]))


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


def randomised_difference(values: Values, other: Values) -> Difference:
    """The difference between two means over the same queries, in the same order.

    The interval is from a bootstrap over the queries, the p value from Fisher's randomisation
    test, which flips the signs of the differences.
    """
    from scipy.stats import permutation_test

    differences = values - other
    observed = mean_interval(differences)
    changed = differences[differences != 0]
    if len(changed) < 2:  # both signs are as extreme
        return Difference(*observed, p=1.0)
    if 2 ** len(changed) <= PERMUTATIONS:  # SciPy then enumerates all sign flips, and p is exact
        differences = changed
    test = permutation_test(
        (differences,),
        numpy.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=1000,
        rng=SEED,
    )
    is_exact = len(test.null_distribution) < PERMUTATIONS
    is_smallest = test.pvalue <= 2 / (1 + PERMUTATIONS)
    return Difference(*observed, float(test.pvalue), p_is_bound=bool(is_smallest and not is_exact))
