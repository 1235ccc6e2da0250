"""The figures of a report, by section: captions with SVG elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy

from semsearch.evaluation.report.figures import (
    Point,
    draw_forest,
    draw_gains,
    draw_scatter,
    draw_speed,
    score_limits,
)
from semsearch.evaluation.report.labels import name_of, short_name, short_names
from semsearch.evaluation.retrieval import IrEvaluation
from semsearch.evaluation.statistics import shown_number
from semsearch.evaluation.sts import Aggregation, StsEvaluation

SPEARMAN = "Spearman × 100"


class Picture(NamedTuple):
    """Related drawings, side by side if there is room."""

    caption: str
    drawings: list[str]


class Pictures(NamedTuple):
    """The figures of a report."""

    results: list[Picture]  #: estimates with their intervals
    details: list[Picture]  #: scores against gold scores, or differences by query
    speed: Picture


def sts_pictures(evaluations: Sequence[StsEvaluation]) -> Pictures:
    """Correlations, scores against gold scores, and speed."""
    names = short_names(evaluations[0].scores)
    groups, details, speeds = [], [], []
    for dataset, scores, results, _ in evaluations:
        name = name_of(dataset)
        for over, of_one in groupby(results, lambda result: result.aggregation):
            points = [
                Point(names[one.system], one.published or math.nan, one.spearman) for one in of_one
            ]
            groups.append((f"{short_name(name)}, {over.value}", points))
        gold = numpy.array([pair.gold for pair in dataset.pairs])
        limits = score_limits(list(scores.values()))
        whole = [one for one in results if one.aggregation is Aggregation.ALL]
        drawings = []
        for result in whole:
            found = f"Spearman {shown_number(result.spearman.value)}"
            title = f"{names[result.system]}\n{found}"
            alt = f"Scores of {result.system} against gold on {name}: {found}."
            drawings.append(draw_scatter(gold, scores[result.system], limits, title, alt))
        caption = f"{name}: the score of each of {len(gold):,} pairs against gold."
        details.append(Picture(caption, drawings))
        points = [Point(names[one.system], one.n / one.seconds, one.spearman) for one in whole]
        speeds += _speed(name, "pairs", SPEARMAN, SPEARMAN, points)
    caption = (
        "Spearman's correlation: dot, its 95 % interval: line, published value: hollow diamond."
    )
    alt = f"{SPEARMAN} with intervals; the table above has the values."
    forest = Picture(caption, [draw_forest(groups, SPEARMAN, alt)])
    return Pictures([forest], details, Picture("Lines are 95 % intervals.", speeds))


def ir_pictures(evaluations: Sequence[IrEvaluation]) -> Pictures:
    """Measures, differences by query, and speed."""
    names = short_names(evaluations[0].runs)
    forests, details, speeds = [], [], []
    for evaluation in evaluations:
        name, results = name_of(evaluation.dataset), evaluation.results
        panels: dict[str, list[Point]] = {}
        for one in results:
            point = Point(names[one.system], one.published or math.nan, one.mean)
            panels.setdefault(one.measure, []).append(point)
        caption = f"{name}. Mean: dot, its 95 % interval: line, published value: hollow diamond."
        alt = f"Measures on {name} with intervals; the table above has the values."
        forests.append(Picture(caption, [draw_forest(list(panels.items()), "mean × 100", alt)]))
        measure = results[0].measure
        first, *others = evaluation.runs
        drawings = []
        for system in others:
            values = evaluation.per_query[system][measure] - evaluation.per_query[first][measure]
            better, worse = int((values > 0).sum()), int((values < 0).sum())
            counts = f"better {better}, same {len(values) - better - worse}, worse {worse}"
            title = f"{names[system]}\nminus {names[first]}: {counts}"
            alt = f"{measure} of {system} minus that of {first} by query: {counts}."
            drawings.append(draw_gains(values, title, alt))
        caption = f"{name}: difference of {measure} × 100, a bar for each query."
        details.append(Picture(caption, drawings))
        texts = len(evaluation.dataset.documents) + len(evaluation.dataset.queries)
        points = [
            Point(names[one.system], texts / one.seconds, one.mean)
            for one in results
            if one.measure == measure
        ]
        speeds += _speed(name, "documents and queries", measure, f"{measure} × 100", points)
    return Pictures(forests, details, Picture("Lines are 95 % intervals.", speeds))


def _speed(
    name: str, things: str, measure: str, axis_label: str, points: Sequence[Point]
) -> list[str]:
    """Speed against quality, of the systems with a time and a value, if any."""
    known = [
        one for one in points if not math.isnan(one.place) and not math.isnan(one.interval.value)
    ]
    if not known:
        return []
    alt = f"{things.capitalize()} per second against {measure} on {name}; see the results."
    return [draw_speed(known, short_name(name), things, axis_label, alt)]
