"""The report of ``semsearch eval sts``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy

from semsearch.datasets import StsSet
from semsearch.evaluation import Aggregation, StsEvaluation
from semsearch.evaluation.sts import StsResult
from semsearch.report.drawing import Drawing
from semsearch.report.figures import (
    Estimate,
    Speed,
    draw_forest,
    draw_scatter,
    draw_speed,
    score_limits,
)
from semsearch.report.labels import (
    difference_cells,
    interval_cell,
    number_cell,
    rate_cell,
    short_name,
    short_names,
    shortened,
)
from semsearch.report.page import Figure, Page, Section, Table, write_page
from semsearch.report.provenance import Provenance, contents_digest
from semsearch.report.worst import worst_pairs

SPEARMAN = "Spearman × 100"
#: Longer sentences are truncated.
SENTENCE_CHARACTERS = 400


def write_sts_report(
    folder: Path, evaluations: Sequence[StsEvaluation], provenance: Provenance
) -> Path:
    """Write ``index.html`` into a folder validated by `check_report`.

    Raises:
        ArgumentError: it cannot be written.
    """
    names = short_names(evaluations[0].scores)
    sections = [
        _results(evaluations, names),
        *([_differences(evaluations)] if len(names) > 1 else []),
        _scatters(evaluations, names),
        _speed(evaluations, names),
        _worst(evaluations),
        _data(evaluations),
    ]
    return write_page(folder, Page("Semantic textual similarity", sections, provenance))


def _results(evaluations: Sequence[StsEvaluation], names: dict[str, str]) -> Section:
    results = [result for evaluation in evaluations for result in evaluation.results]
    groups = []
    for dataset, _, found, _ in evaluations:
        for over, of_one in groupby(found, lambda result: result.aggregation):
            rows = [Estimate(names[one.system], one.spearman, one.published) for one in of_one]
            groups.append((f"{short_name(_name(dataset))}, {over.value}", rows))
    text = (
        "Rank correlation between a system's scores of sentence pairs and human scores. Intervals "
        "are 95 % bootstrap intervals over pairs. all: all pairs together, as in the SBERT paper; "
        "mean: the mean over subsets. Published: the value in a paper, for the same weights and "
        "pairs."
    )
    table = Table(
        "Correlation with gold scores, times 100",
        [
            "system",
            "precision",
            "set",
            "over",
            ">pairs",
            ">Spearman",
            ">Pearson",
            ">published",
            ">pairs/s",
        ],
        [_result_row(result) for result in results],
    )
    caption = (
        "Spearman's correlation: dot, its 95 % interval: line, published value: hollow diamond."
    )
    alt = f"{SPEARMAN} with intervals; the table above has the values."
    return Section("Results", text, [table, Figure(caption, [draw_forest(groups, SPEARMAN, alt)])])


def _result_row(result: StsResult) -> list[str]:
    return [
        result.system,
        result.precision or "",
        f"{result.dataset} {result.split}",
        result.aggregation.value,
        f"{result.n:,}",
        interval_cell(result.spearman),
        number_cell(result.pearson),
        number_cell(result.published),
        rate_cell(result.n, result.seconds),
    ]


def _differences(evaluations: Sequence[StsEvaluation]) -> Section:
    text = (
        "Differences between two systems on the same pairs. If the interval excludes zero, the "
        "difference is significant; with many comparisons, some are due to chance."
    )
    rows = [
        [system, other, _name(evaluation.dataset), over.value, *difference_cells(found)]
        for evaluation in evaluations
        for over, system, other, found in evaluation.differences
    ]
    headings = ["system", "minus", "set", "over", ">difference", ">p"]
    table = Table("Paired differences of Spearman's correlation, times 100", headings, rows)
    return Section("Differences", text, [table])


def _scatters(evaluations: Sequence[StsEvaluation], names: dict[str, str]) -> Section:
    figures = []
    for dataset, scores, results, _ in evaluations:
        gold = numpy.array([pair.gold for pair in dataset.pairs])
        limits = score_limits(list(scores.values()))
        drawings = []
        for result in results:
            if result.aggregation is Aggregation.ALL:
                found = f"Spearman {number_cell(result.spearman.value) or 'undefined'}"
                drawings.append(
                    draw_scatter(
                        gold,
                        scores[result.system],
                        limits,
                        f"{names[result.system]}\n{found}",
                        f"Scores of {result.system} against gold on {_name(dataset)}: {found}.",
                    )
                )
        caption = f"{_name(dataset)}: the score of each of {len(gold):,} pairs against gold."
        figures.append(Figure(caption, drawings))
    text = (
        "A good system puts its pairs on a line from the lower left to the upper right. Many pairs "
        "are drawn as cells, coloured by the number of pairs, on a logarithmic scale for "
        "each system. If gold scores are integers, box plots show the quartiles of the scores."
    )
    return Section("Score against gold", text, figures)


def _speed(evaluations: Sequence[StsEvaluation], names: dict[str, str]) -> Section:
    drawings: list[Drawing] = []
    for dataset, _, results, _ in evaluations:
        points = [
            Speed(names[result.system], result.n / result.seconds, result.spearman)
            for result in results
            if result.aggregation is Aggregation.ALL and not math.isnan(result.spearman.value)
        ]
        if points:
            title = short_name(_name(dataset))
            alt = f"Pairs per second against {SPEARMAN} on {_name(dataset)}; see the results."
            drawings.append(draw_speed(points, title, "pairs", SPEARMAN, alt))
    text = (
        "To the right is faster, up is better. Timed once, on the machine below: encoding and "
        "scoring, without loading the model; the time of the first set includes warm-up."
    )
    figures = [Figure("Lines are 95 % intervals.", drawings)] if drawings else []
    return Section("Speed against quality", text, figures)


def _worst(evaluations: Sequence[StsEvaluation]) -> Section:
    tables = [
        Table(
            f"{_name(evaluation.dataset)}, {system}",
            ["one", "other", ">gold", ">score", ">gold rank, %", ">score rank, %"],
            [
                [
                    shortened(worst.pair.left, SENTENCE_CHARACTERS),
                    shortened(worst.pair.right, SENTENCE_CHARACTERS),
                    f"{worst.pair.gold:g}",
                    f"{worst.score:.3f}",
                    f"{worst.gold_percentile:.0f}",
                    f"{worst.score_percentile:.0f}",
                ]
                for worst in worst_pairs(evaluation.dataset.pairs, scores)
            ],
        )
        for evaluation in evaluations
        for system, scores in evaluation.scores.items()
    ]
    text = (
        "The pairs whose rank by the system's score is farthest from their rank by gold score: "
        "these reduce the correlation most. 0 % is the least similar pair of the set, 100 % the "
        "most similar one."
    )
    return Section("Worst pairs", text, tables)


def _data(evaluations: Sequence[StsEvaluation]) -> Section:
    rows = [
        [
            _name(dataset),
            f"{len(dataset.pairs):,}",
            f"{len(dataset.subsets)}",
            f"{dataset.unscored:,}",
            contents_digest(dataset),
        ]
        for dataset, *_ in evaluations
    ]
    headings = ["set", ">pairs", ">subsets", ">left out, no gold", "digest"]
    text = "Reports with the same digest used the same pairs in the same order."
    return Section("Data", text, [Table("Sets of pairs", headings, rows)])


def _name(dataset: StsSet) -> str:
    return f"{dataset.name} {dataset.split}"
