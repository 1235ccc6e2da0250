"""Semantic textual similarity: how well a system's scores follow those of people.

The measure is Spearman's rank correlation with the gold scores (Reimers, Beyer & Gurevych 2016 on
why it and not Pearson's). A yearly set of SemEval is scored in two ways, which differ by points:
over all its pairs together, or as the mean over its sub-sets.
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
from semsearch.errors import ArgumentError, ExamplesError
from semsearch.evaluation.intervals import (
    Difference,
    Interval,
    bootstrap_difference,
    interval,
    resampled_spearman,
)
from semsearch.evaluation.pair_scorers import PairScorer
from semsearch.evaluation.published import published_sts

#: Fewer pairs have no correlation worth the name.
LEAST_PAIRS = 3


class Aggregation(Enum):
    """How a set of several sub-sets becomes one figure."""

    ALL = "all"  #: all pairs together, as in the SBERT paper
    MEAN = "mean"  #: the mean over sub-sets


class StsResult(NamedTuple):
    """One system on one set. Correlations are times 100."""

    dataset: str
    split: str
    aggregation: Aggregation
    system: str
    n: int
    spearman: Interval
    pearson: float
    seconds: float  #: to score all pairs, encoding included; not the loading of the model
    published: float | None  #: Spearman, where a paper has this system on the same pairs
    precision: str | None = None  #: in which numbers the system computed; None without a choice


class StsDifference(NamedTuple):
    """By how much `system` is above `other`, in Spearman's correlation times 100."""

    aggregation: Aggregation
    system: str
    other: str
    difference: Difference


class StsEvaluation(NamedTuple):
    """All systems on one set."""

    dataset: StsSet
    scores: dict[str, Values]  #: by system, in the order of the set's pairs
    results: list[StsResult]
    differences: list[StsDifference]  #: of every two systems


def evaluate_sts(dataset: StsSet, scorers: Sequence[PairScorer]) -> StsEvaluation:
    """Score the pairs of a set by every system, with 95 % bootstrap intervals.

    Pairs are resampled, within each sub-set for the mean over sub-sets; all systems see the same
    samples, so that their differences are paired.

    Raises:
        ArgumentError: the set, or a sub-set of it, has too few pairs, or one of these is of
            another type.
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
    for name, pairs in dataset.subsets.items():
        if len(pairs) < LEAST_PAIRS:
            raise ExamplesError(
                f"{dataset.name}: {len(pairs)} pairs with a gold score in {name}; "
                f"a correlation needs {LEAST_PAIRS} or more"
            )
    scores, seconds, precisions = {}, {}, {}
    for scorer in scorers:
        started = time.perf_counter()
        texts = [(pair.left, pair.right) for pair in dataset.pairs]
        scores[scorer.spec] = scorer.score_pairs(texts).astype(numpy.float64)
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
    for part, wanted in zip(parts, gold, strict=True):
        rated = [evaluation.scores[system][part.start : part.end] for system in systems]
        distributions.append(100 * resampled_spearman(rated, wanted))
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
    """What is published is over all pairs together."""
    if aggregation is not Aggregation.ALL:
        return None
    return published_sts(system, dataset.name, dataset.split, len(dataset.pairs))


class _Part(NamedTuple):
    """Pairs that are correlated together, and where they stand among the set's."""

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
