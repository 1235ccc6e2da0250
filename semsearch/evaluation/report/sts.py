"""The report of ``semsearch eval sts``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy

from semsearch.evaluation.report.figures import Point, draw_forest, draw_scatter, score_limits
from semsearch.evaluation.report.labels import (
    interval_cell,
    number_cell,
    rate_cell,
    short_name,
    short_names,
    shortened,
)
from semsearch.evaluation.report.page import Figure, Page, Section, Table, write_page
from semsearch.evaluation.report.provenance import Provenance, contents_digest
from semsearch.evaluation.report.sections import difference_section, name_of, speed_section
from semsearch.evaluation.report.worst import worst_pairs
from semsearch.evaluation.sts import Aggregation, StsEvaluation

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
    differences = difference_section(
        "Differences between two systems on the same pairs. If the interval excludes zero, the "
        "difference is significant; with many comparisons, some are due to chance.",
        "Paired differences of Spearman's correlation, times 100",
        "over",
        [
            (system, other, name_of(evaluation.dataset), over.value, found)
            for evaluation in evaluations
            for over, system, other, found in evaluation.differences
        ],
    )
    sections = [
        _results(evaluations, names),
        *([differences] if len(names) > 1 else []),
        _scatters(evaluations, names),
        speed_section(
            "Timed once, on the machine below: encoding and scoring, without loading the model; "
            "the time of the first set includes warm-up.",
            "pairs",
            [
                (
                    name_of(evaluation.dataset),
                    SPEARMAN,
                    SPEARMAN,
                    [
                        Point(names[one.system], one.n / one.seconds, one.spearman)
                        for one in evaluation.results
                        if one.aggregation is Aggregation.ALL
                    ],
                )
                for evaluation in evaluations
            ],
        ),
        _worst(evaluations),
        _data(evaluations),
    ]
    return write_page(folder, Page("Semantic textual similarity", sections, provenance))


def _results(evaluations: Sequence[StsEvaluation], names: dict[str, str]) -> Section:
    text = (
        "Rank correlation between a system's scores of sentence pairs and human scores. Intervals "
        "are 95 % bootstrap intervals over pairs. all: all pairs together, as in the SBERT paper; "
        "mean: the mean over subsets. Published: the value in a paper, for the same weights and "
        "pairs."
    )
    rows, groups = [], []
    for evaluation in evaluations:
        name = short_name(name_of(evaluation.dataset))
        for over, of_one in groupby(evaluation.results, lambda result: result.aggregation):
            results = list(of_one)
            points = [
                Point(names[one.system], one.published or math.nan, one.spearman) for one in results
            ]
            groups.append((f"{name}, {over.value}", points))
            rows += [
                [
                    one.system,
                    one.precision or "",
                    f"{one.dataset} {one.split}",
                    over.value,
                    f"{one.n:,}",
                    interval_cell(one.spearman),
                    number_cell(one.pearson),
                    number_cell(one.published),
                    rate_cell(one.n, one.seconds),
                ]
                for one in results
            ]
    headings = ["system", "precision", "set", "over"]
    headings += [">pairs", ">Spearman", ">Pearson", ">published", ">pairs/s"]
    caption = (
        "Spearman's correlation: dot, its 95 % interval: line, published value: hollow diamond."
    )
    alt = f"{SPEARMAN} with intervals; the table above has the values."
    table = Table("Correlation with gold scores, times 100", headings, rows)
    return Section("Results", text, [table, Figure(caption, [draw_forest(groups, SPEARMAN, alt)])])


def _scatters(evaluations: Sequence[StsEvaluation], names: dict[str, str]) -> Section:
    figures = []
    for dataset, scores, results, _ in evaluations:
        name = name_of(dataset)
        gold = numpy.array([pair.gold for pair in dataset.pairs])
        limits = score_limits(list(scores.values()))
        drawings = []
        for result in results:
            if result.aggregation is Aggregation.ALL:
                found = f"Spearman {number_cell(result.spearman.value) or 'undefined'}"
                title = f"{names[result.system]}\n{found}"
                alt = f"Scores of {result.system} against gold on {name}: {found}."
                drawings.append(draw_scatter(gold, scores[result.system], limits, title, alt))
        caption = f"{name}: the score of each of {len(gold):,} pairs against gold."
        figures.append(Figure(caption, drawings))
    text = (
        "A good system puts its pairs on a line from the lower left to the upper right. Many pairs "
        "are drawn as cells, coloured by the number of pairs, on a logarithmic scale for "
        "each system. If gold scores are integers, box plots show the quartiles of the scores."
    )
    return Section("Score against gold", text, figures)


def _worst(evaluations: Sequence[StsEvaluation]) -> Section:
    headings = ["one", "other", ">gold", ">score", ">gold rank, %", ">score rank, %"]
    tables = []
    for evaluation in evaluations:
        for system, scores in evaluation.scores.items():
            rows = [
                [
                    shortened(worst.pair.left, SENTENCE_CHARACTERS),
                    shortened(worst.pair.right, SENTENCE_CHARACTERS),
                    f"{worst.pair.gold:g}",
                    f"{worst.score:.3f}",
                    f"{worst.gold_percentile:.0f}",
                    f"{worst.score_percentile:.0f}",
                ]
                for worst in worst_pairs(evaluation.dataset.pairs, scores)
            ]
            tables.append(Table(f"{name_of(evaluation.dataset)}, {system}", headings, rows))
    text = (
        "The pairs whose rank by the system's score is farthest from their rank by gold score: "
        "these reduce the correlation most. 0 % is the least similar pair of the set, 100 % the "
        "most similar one."
    )
    return Section("Worst pairs", text, tables)


def _data(evaluations: Sequence[StsEvaluation]) -> Section:
    rows = [
        [
            name_of(dataset),
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
