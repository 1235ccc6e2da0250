"""Evaluates semantic textual similarity: the correlation of scores with human scores.

The measure is Spearman's rank correlation with the gold scores (preferred over Pearson's by
Reimers, Beyer & Gurevych 2016). The SemEval years are scored in two ways, whose results differ by
points: over all pairs together, or as the mean over subsets.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from typing import NamedTuple

import numpy

from semsearch.arguments import check_items, shown
from semsearch.correlations import Values, pearson, spearman
from semsearch.datasets import ScoredPair, StsSet
from semsearch.errors import ArgumentError
from semsearch.evaluation.intervals import (
    SEED,
    Difference,
    Interval,
    bootstrap_difference,
    interval,
    resampled_spearman,
)
from semsearch.evaluation.pair_scorers import OnProgress, PairScorer
from semsearch.evaluation.published import published_sts
from semsearch.texts import quantity

#: Pairs scored between two reports of progress.
PAIRS_AT_ONCE = 500
#: A correlation over fewer pairs is meaningless.
MIN_PAIRS = 3


class Aggregation(Enum):
    """How the results of several subsets are combined."""

    ALL = "all"  #: all pairs together, as in the SBERT paper
    MEAN = "mean"  #: the mean over subsets


class StsResult(NamedTuple):
    """One system on one set. Correlations are times 100."""

    dataset: str
    split: str
    aggregation: Aggregation
    system: str
    n: int
    spearman: Interval
    pearson: float
    seconds: float  #: for scoring all pairs including encoding, without loading the model
    published: float | None  #: the value in a paper, for this system on the same pairs
    precision: str | None = None  #: of the system's computations; None without a choice


class StsDifference(NamedTuple):
    """Spearman's correlation of `system` minus that of `other`, times 100."""

    aggregation: Aggregation
    system: str
    other: str
    difference: Difference


class StsEvaluation(NamedTuple):
    """All systems on one set."""

    dataset: StsSet
    scores: dict[str, Values]  #: by system, in the order of the set's pairs
    results: list[StsResult]
    differences: list[StsDifference]  #: of all pairs of systems


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
        ArgumentError: the set or one of its subsets has too few pairs, there is no system, two have
            the same name, one does not return a score per pair, or an argument has the wrong type.
    """
    if not isinstance(dataset, StsSet):
        raise ArgumentError(f"dataset must be an StsSet, not {shown(dataset)}")
    scorers = check_items("scorers", scorers, "pair scorers")
    for scorer in scorers:
        if not callable(getattr(scorer, "score_pairs", None)):
            raise ArgumentError(
                f"scorers must hold pair scorers (load_pair_scorer returns one), not "
                f"{shown(scorer)}"
            )
    if not scorers:
        raise ArgumentError("scorers must hold at least one pair scorer")
    systems = [scorer.spec for scorer in scorers]
    if twice := [system for system in systems if systems.count(system) > 1]:
        raise ArgumentError(f"two systems are named '{twice[0]}'")
    for name, pairs in dataset.subsets.items():
        if len(pairs) < MIN_PAIRS:
            raise ArgumentError(
                f"{dataset.name}: {quantity(len(pairs), 'pair')} with a gold score in {name}; "
                f"a correlation needs {MIN_PAIRS} or more"
            )
    scores, seconds, precisions = {}, {}, {}
    for scorer in scorers:
        started = time.perf_counter()
        texts = [(pair.left, pair.right) for pair in dataset.pairs]
        scores[scorer.spec] = numpy.empty(len(texts))
        on_progress(scorer.spec, "pairs", 0, len(texts))
        for start in range(0, len(texts), PAIRS_AT_ONCE):
            block = texts[start : start + PAIRS_AT_ONCE]
            found = numpy.asarray(scorer.score_pairs(block), numpy.float64)
            if found.shape != (len(block),):
                raise ArgumentError(
                    f"'{scorer.spec}' must return one score per pair, shape ({len(block)},), not "
                    f"{found.shape}"
                )
            scores[scorer.spec][start : start + len(block)] = found
            on_progress(scorer.spec, "pairs", start + len(block), len(texts))
        seconds[scorer.spec] = time.perf_counter() - started
        precisions[scorer.spec] = scorer.precision
    evaluation = StsEvaluation(dataset, scores, [], [])
    aggregations = list(Aggregation) if len(dataset.subsets) > 1 else [Aggregation.ALL]
    for aggregation in aggregations:
        _aggregate(evaluation, aggregation, seconds, precisions)
    return evaluation


def _aggregate(
    evaluation: StsEvaluation,
    aggregation: Aggregation,
    seconds: dict[str, float],
    precisions: dict[str, str | None],
) -> None:
    """Add the results and differences of one aggregation."""
    dataset = evaluation.dataset
    systems = list(evaluation.scores)
    parts = _parts(dataset, aggregation)
    gold = [numpy.array([pair.gold for pair in part.pairs]) for part in parts]
    found: dict[str, float] = {}
    distributions = []
    rng = numpy.random.default_rng(SEED)  # one for all parts, whose samples must be independent
    for part, wanted in zip(parts, gold, strict=True):
        rated = [evaluation.scores[system][part.start : part.end] for system in systems]
        distributions.append(100 * resampled_spearman(rated, wanted, rng))
    resampled = dict(zip(systems, numpy.mean(distributions, axis=0), strict=True))
    for system, scores in evaluation.scores.items():
        rated = [scores[part.start : part.end] for part in parts]
        found[system] = 100 * float(numpy.mean([*map(spearman, rated, gold)]))
        evaluation.results.append(
            StsResult(
                dataset.name,
                dataset.split,
                aggregation,
                system,
                len(scores),
                interval(found[system], resampled[system]),
                100 * float(numpy.mean([*map(pearson, rated, gold)])),
                seconds[system],
                _published(system, dataset, aggregation),
                precisions[system],
            )
        )
    for other, system in combinations(systems, 2):
        difference = bootstrap_difference(
            found[system], found[other], resampled[system], resampled[other]
        )
        evaluation.differences.append(StsDifference(aggregation, system, other, difference))


def _published(system: str, dataset: StsSet, aggregation: Aggregation) -> float | None:
    """The published value; papers report it over all pairs together."""
    if aggregation is not Aggregation.ALL:
        return None
    return published_sts(system, dataset.name, dataset.split, len(dataset.pairs))


class _Part(NamedTuple):
    """Pairs that are correlated together, and their positions in the set."""

    start: int
    end: int
    pairs: list[ScoredPair]


def _parts(dataset: StsSet, aggregation: Aggregation) -> list[_Part]:
    if aggregation is Aggregation.ALL:
        return [_Part(0, len(dataset.pairs), dataset.pairs)]
    parts, start = [], 0
    for pairs in dataset.subsets.values():
        parts.append(_Part(start, start + len(pairs), pairs))
        start += len(pairs)
    return parts
