"""Spearman's rank correlation of systems with gold scores, with its uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from semsearch.evaluation.intervals import RESAMPLES, SEED, Values


def spearman(scores: Values, gold: Values) -> float:
    """Spearman's correlation; NaN when either side is constant."""
    return float(_spearman_rows(scores[None], gold[None])[0])


def pearson(scores: Values, gold: Values) -> float:
    """Pearson's correlation; NaN when either side is constant."""
    return float(_pearson_rows(scores[None], gold[None])[0])


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
        return numpy.stack([_spearman_rows(one, wanted) for one in rated])

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


def _spearman_rows(one: Values, other: Values) -> Values:
    from scipy.stats import rankdata

    return _pearson_rows(rankdata(one, axis=-1), rankdata(other, axis=-1))


def _pearson_rows(one: Values, other: Values) -> Values:
    """Row by row; scipy's functions take one pair of samples at a time."""
    one = one - one.mean(axis=-1, keepdims=True)
    other = other - other.mean(axis=-1, keepdims=True)
    with numpy.errstate(invalid="ignore"):
        products: Values = (one * other).sum(axis=-1) / numpy.sqrt(
            (one**2).sum(axis=-1) * (other**2).sum(axis=-1)
        )
    return products
