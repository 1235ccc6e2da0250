"""Confidence intervals and significance tests, against formulas and exact enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy
import pytest
from scipy.stats import spearmanr

from semsearch.evaluation.statistics import (
    RESAMPLES,
    Difference,
    Interval,
    bootstrap_difference,
    interval,
    mean_interval,
    pearson,
    randomised_difference,
    resampled_spearman,
    spearman,
)


@pytest.fixture
def rng():
    return numpy.random.default_rng(7)


def correlated(rng, n, noise):
    """A system's scores, and gold scores with many ties, like those of annotators."""
    gold = rng.integers(0, 11, n) / 2
    return gold + noise * rng.normal(size=n), gold


def test_spearmans_correlation_equals_scipys_row_by_row(rng):
    scores, gold = correlated(rng, 200, 2.0)
    expected = [spearmanr(scores, gold)[0], spearmanr(-gold, gold)[0]]
    rows = numpy.stack([scores, -gold]), numpy.stack([gold, gold])
    numpy.testing.assert_allclose(spearman(*rows), expected, atol=1e-12)


def test_a_constant_has_no_correlation():
    """Also if its mean is not exactly the constant, as that of 0.1, 0.1 and 0.1."""
    for constant in (numpy.full(5, 1.0), numpy.full(3, 0.1)):
        others = numpy.arange(float(len(constant)))
        for correlation in (spearman, pearson):
            assert math.isnan(correlation(constant, others))
            assert math.isnan(correlation(others, constant))


def test_the_bootstrap_error_is_close_to_fishers(rng):
    """Standard error of atanh(r): about sqrt(1.06 / (n - 3)) (Fieller, Hartley & Pearson 1957)."""
    scores, gold = correlated(rng, 800, 2.0)
    resampled = resampled_spearman([scores], gold)
    assert resampled.shape == (1, RESAMPLES)
    found = numpy.arctanh(resampled).std()
    assert found == pytest.approx(math.sqrt(1.06 / 797), rel=0.15)
    assert resampled.mean() == pytest.approx(spearman(scores, gold), abs=0.01)


def test_systems_are_resampled_together(rng):
    scores, gold = correlated(rng, 100, 1.0)
    one, same, other = resampled_spearman([scores, 3 * scores + 1, -scores], gold)
    numpy.testing.assert_allclose([same, -other], [one, one], atol=1e-12)


def test_undefined_correlations_are_left_out():
    gold = numpy.array([0.0, 0.0, 0.0, 1.0])
    resampled = resampled_spearman([gold], gold)[0]
    undefined = numpy.isnan(resampled)  # the 1 is not drawn in (3/4)^4 of the samples
    assert undefined.mean() == pytest.approx(0.316, abs=0.05)
    assert interval(1.0, resampled) == pytest.approx((1, 1, 1))
    assert math.isnan(interval(math.nan, numpy.full(10, math.nan)).low)


def test_differences_of_resamples(rng):
    """Of equal samples, undefined ones and clearly different ones."""
    resampled, zeros = rng.normal(size=RESAMPLES), numpy.zeros(RESAMPLES)
    assert bootstrap_difference(0.5, 0.5, resampled, resampled) == (0, 0, 0, 1.0, False)
    for value, resample in ((math.nan, 1.0), (0.5, math.nan)):
        found = bootstrap_difference(value, 0.1, zeros + resample, zeros)
        assert math.isnan(found.p)
        assert not found.p_is_bound
    found = bootstrap_difference(3.0, 1.0, resampled + 2, resampled)
    assert found == pytest.approx((2, 2, 2, 2 / (RESAMPLES + 1), True))


def test_p_counts_the_other_side_of_zero():
    differences = numpy.linspace(-0.1, 0.9, RESAMPLES, endpoint=False)  # 101 of them up to 0
    found = bootstrap_difference(0.4, 0.0, differences, numpy.zeros(RESAMPLES))
    assert found.p == pytest.approx(2 * (1 + 101) / (RESAMPLES + 1), abs=0.003)
    assert (found.p_is_bound, found.p_shown) == (False, "0.204")
    assert (found.low, found.high) == pytest.approx((-0.075, 0.874), abs=0.002)


def test_a_mean_has_the_interval_of_its_standard_error(rng):
    values = rng.normal(50, 20, size=1000)
    found = mean_interval(values)
    margin = 1.96 * values.std() / math.sqrt(1000)
    assert found.value == values.mean()
    expected = found.value - margin, found.value + margin
    assert found[1:] == pytest.approx(expected, abs=0.15 * margin)


def test_one_query_has_no_interval_and_no_significant_difference():
    found = mean_interval(numpy.array([40.0]))
    assert found.value == 40
    assert numpy.isnan([found.low, found.high]).all()
    found = randomised_difference(numpy.array([40.0]), numpy.array([10.0]))
    assert (found.value, found.p, found.p_is_bound) == (30, 1.0, False)
    assert math.isnan(found.low)


def test_the_randomisation_test_is_exact_for_few_queries():
    """Of 2^8 ways to set the signs, two are as extreme as eight differences of one sign."""
    found = randomised_difference(numpy.arange(1.0, 9.0), numpy.zeros(8))
    assert found.value == 4.5
    assert found.p == pytest.approx(2 / 2**8)
    assert (found.p_is_bound, found.p_shown) == (False, "0.008")  # exact
    turned = randomised_difference(numpy.zeros(8), numpy.arange(1.0, 9.0))
    assert turned.p == found.p
    assert (turned.value, turned.low, turned.high) == (-4.5, -found.high, -found.low)
    # SciPy counts the observed signs among the 9,999 drawn: p is at least 2 / 10,000.
    found = randomised_difference(numpy.arange(1.0, 51.0), numpy.zeros(50))
    assert (found.p, found.p_is_bound, found.p_shown) == (0.0002, True, "< 0.001")


def test_queries_without_a_difference_do_not_change_p():
    """Of 2^n sign flips of n equal differences, two are as extreme; by hand."""
    assert randomised_difference(numpy.arange(3.0), numpy.arange(3.0)) == (0, 0, 0, 1.0, False)
    for sign, changed in product((1, -1), (1, 2, 4)):
        values = numpy.zeros(40)
        values[:changed] = sign
        assert randomised_difference(values, numpy.zeros(40)).p == 2 / 2**changed


def test_what_tables_show():
    nan = math.nan
    shown = {
        Interval(nan, nan, nan): "undefined",
        Interval(1, nan, nan): "1.00",
        Interval(-0.001, -1, 2): "0.00 [-1.00, 2.00]",
    }
    assert [interval.shown for interval in shown] == list(shown.values())
    shown = {
        Difference(nan, nan, nan, nan): ("undefined", ""),
        Difference(1, nan, nan, 1.0): ("+1.00", "1.000"),
        Difference(-0.001, -1, 2, 0.0001): ("+0.00 [-1.00, +2.00]", "< 0.001"),
        Difference(1, 1, 1, 0.002, p_is_bound=True): ("+1.00 [+1.00, +1.00]", "≤ 0.002"),
    }
    for difference, cells in shown.items():
        assert (difference.shown, difference.p_shown) == cells
