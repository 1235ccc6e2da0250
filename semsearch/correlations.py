"""Correlations of scores with gold scores: Spearman's and Pearson's."""

from __future__ import annotations

from typing import TypeAlias

import numpy
from numpy.typing import NDArray

#: Scores, one for each pair or query.
Values: TypeAlias = NDArray[numpy.float64]


def spearman(scores: Values, gold: Values) -> float:
    """Spearman's rank correlation; NaN if either side is constant."""
    return float(spearman_rows(scores[None], gold[None])[0])


def pearson(scores: Values, gold: Values) -> float:
    """Pearson's correlation; NaN if either side is constant."""
    return float(_pearson_rows(scores[None], gold[None])[0])


def spearman_rows(one: Values, other: Values) -> Values:
    """Spearman's correlation row by row; scipy's function takes one pair of samples at a time."""
    from scipy.stats import rankdata

    return _pearson_rows(rankdata(one, axis=-1), rankdata(other, axis=-1))


def _pearson_rows(one: Values, other: Values) -> Values:
    # The deviations of a constant from its mean may be rounding errors instead of 0.
    constant = (one == one[..., :1]).all(axis=-1) | (other == other[..., :1]).all(axis=-1)
    one = one - one.mean(axis=-1, keepdims=True)
    other = other - other.mean(axis=-1, keepdims=True)
    with numpy.errstate(invalid="ignore"):
        products: Values = (one * other).sum(axis=-1) / numpy.sqrt(
            (one**2).sum(axis=-1) * (other**2).sum(axis=-1)
        )
    return numpy.where(constant, numpy.nan, products)
