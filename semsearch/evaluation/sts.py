"""Evaluates semantic textual similarity: the correlation of scores with human scores.

The measure is Spearman's rank correlation with the gold scores (preferred over Pearson's by
Reimers, Beyer & Gurevych 2016). The SemEval years are scored in two ways, whose results differ by
points: over all pairs together, or as the mean over subsets.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

import numpy

from semsearch.errors import ArgumentError, quantity
from semsearch.evaluation.datasets import StsSet
from semsearch.evaluation.pair_scorers import OnProgress, PairScorer, check_systems
from semsearch.evaluation.results import PairedDifference, Result, published_value
from semsearch.evaluation.statistics import (
    SEED,
    Values,
    bootstrap_difference,
    interval,
    pearson,
    resampled_spearman,
    spearman,
)

#: Pairs scored between two reports of progress.
PAIRS_AT_ONCE = 500
#: A correlation over fewer pairs is meaningless.
MIN_PAIRS = 3


class Aggregation(StrEnum):
    """How the results of several subsets are combined."""

    ALL = "all"  #: all pairs together, as in the SBERT paper
    MEAN = "mean"  #: the mean over subsets


class StsEvaluation(NamedTuple):
    """All systems on one set."""

    dataset: StsSet
    scores: dict[str, Values]  #: by system, in the order of the set's pairs
    results: list[Result]
    differences: list[PairedDifference]  #: of all pairs of systems


def evaluate_sts(
    dataset: StsSet,
    scorers: Sequence[PairScorer],
    *,
    on_progress: OnProgress = lambda system, items, done, total: None,
) -> StsEvaluation:
    """Evaluate systems on an STS set, with 95 % bootstrap intervals.

    Pairs are resampled; for the mean over subsets, within each subset. All systems share the same
    samples, so their differences are paired.

    Args:
        dataset: pairs with gold scores.
        scorers: the systems.
        on_progress: called with the name of a system, "pairs", how many are scored, and of how
            many.

    Raises:
        ArgumentError: the set or one of its subsets has too few pairs, two systems have the same
            name, or one does not return a score per pair.
    """
    scorers = check_systems("scorers", scorers)
    for name, pairs in dataset.subsets.items():
        if len(pairs) < MIN_PAIRS:
            raise ArgumentError(
                f"{dataset.name}: {quantity(len(pairs), 'pair')} with a gold score in {name}; "
                f"a correlation needs {MIN_PAIRS} or more"
            )
    scores, seconds = {}, {}
    for scorer in scorers:
        started = time.perf_counter()
        scores[scorer.spec] = _scores(dataset, scorer, on_progress)
        seconds[scorer.spec] = time.perf_counter() - started
    precisions = {scorer.spec: scorer.precision for scorer in scorers}
    n, results, differences = len(dataset.pairs), [], []
    for aggregation in list(Aggregation) if len(dataset.subsets) > 1 else [Aggregation.ALL]:
        values, resampled = _correlations(dataset, scores, aggregation)
        for system in scores:
            published = None
            if aggregation is Aggregation.ALL:  # as papers report it
                published = published_value("sts", system, dataset.name, dataset.split, n)
            spearmans, pearsons = values[system]
            estimate = interval(spearmans, resampled[system])
            results.append(
                Result(
                    *(aggregation, system, n, estimate, seconds[system], published),
                    precision=precisions[system],
                    pearson=pearsons,
                )
            )
        for other, system in combinations(scores, 2):
            difference = bootstrap_difference(
                values[system][0], values[other][0], resampled[system], resampled[other]
            )
            differences.append(PairedDifference(aggregation, system, other, difference))
    return StsEvaluation(dataset, scores, results, differences)


def _scores(dataset: StsSet, scorer: PairScorer, on_progress: OnProgress) -> Values:
    """The scores of all pairs, in the order of the set."""
    texts = [(pair.left, pair.right) for pair in dataset.pairs]
    scores = numpy.empty(len(texts))
    on_progress(scorer.spec, "pairs", 0, len(texts))
    for start in range(0, len(texts), PAIRS_AT_ONCE):
        block = texts[start : start + PAIRS_AT_ONCE]
        found = numpy.asarray(scorer.score_pairs(block), numpy.float64)
        if found.shape != (len(block),):
            raise ArgumentError(
                f"'{scorer.spec}' must return one score per pair, shape ({len(block)},), not "
                f"{found.shape}"
            )
        scores[start : start + len(block)] = found
        on_progress(scorer.spec, "pairs", start + len(block), len(texts))
    return scores


def _correlations(
    dataset: StsSet, scores: dict[str, Values], aggregation: Aggregation
) -> tuple[dict[str, tuple[float, float]], dict[str, Values]]:
    """Spearman's and Pearson's correlation of each system, and Spearman's of bootstrap samples."""
    gold = numpy.array([pair.gold for pair in dataset.pairs])
    sizes = [len(pairs) for pairs in dataset.subsets.values()]
    ends = numpy.cumsum(sizes)[:-1] if aggregation is Aggregation.MEAN else numpy.empty(0, int)
    golds = numpy.split(gold, ends)
    parts = {system: numpy.split(values, ends) for system, values in scores.items()}
    values = {
        system: (
            100 * float(numpy.mean([*map(spearman, rated, golds)])),
            100 * float(numpy.mean([*map(pearson, rated, golds)])),
        )
        for system, rated in parts.items()
    }
    rng = numpy.random.default_rng(SEED)  # one for all parts, whose samples must be independent
    distributions = [
        100 * resampled_spearman(rated, wanted, rng)
        for *rated, wanted in zip(*parts.values(), golds, strict=True)
    ]
    return values, dict(zip(scores, numpy.mean(distributions, axis=0), strict=True))
