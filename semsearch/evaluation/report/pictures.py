"""The figures of a report, by section: captions with SVG elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from semsearch.evaluation.sts import StsEvaluation


class Picture(NamedTuple):
    """Related drawings, side by side if there is room."""

    caption: str
    drawings: list[str]


class Pictures(NamedTuple):
    """The figures of a report."""

    results: list[Picture]  #: estimates with their intervals
    details: list[Picture]  #: scores against gold scores, or differences by query
    speed: Picture


def pictures(evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation]) -> Pictures:
    """Estimates, scores against gold scores or differences by query, and speed."""
    names = short_names(dict.fromkeys(result.system for result in evaluations[0].results))
    forests, details, speeds = [], [], []
    for evaluation in evaluations:
        name = name_of(evaluation.dataset)
        if isinstance(evaluation, StsEvaluation):
            details.append(_scatters(evaluation, names))
            things, count, quality = "pairs", len(evaluation.dataset.pairs), "Spearman"
        else:
            details.append(_gains(evaluation, names))
            things, quality = "documents and queries", "mean"
            count = len(evaluation.dataset.documents) + len(evaluation.dataset.queries)
        panels: dict[str, list[Point]] = {}
        known = []
        for one in evaluation.results:
            point = Point(names[one.system], one.published or math.nan, one.estimate)
            panels.setdefault(one.over, []).append(point)
            is_known = not math.isnan(one.seconds + one.estimate.value)
            if one.over == evaluation.results[0].over and is_known:
                known.append(point._replace(place=count / one.seconds))
        alt = f"Estimates on {name} with intervals; the table above has the values."
        drawing = draw_forest(list(panels.items()), f"{quality} × 100", alt)
        caption = f"{name}. Dot: {quality}; line: 95 % interval; hollow diamond: published value."
        forests.append(Picture(caption, [drawing]))
        if known:
            over = "Spearman" if quality == "Spearman" else evaluation.results[0].over
            alt = f"{things.capitalize()} per second against {over} on {name}; see the results."
            speeds.append(draw_speed(known, short_name(name), things, f"{over} × 100", alt))
    return Pictures(forests, details, Picture("Lines are 95 % intervals.", speeds))


def _scatters(evaluation: StsEvaluation, names: Mapping[str, str]) -> Picture:
    """The scores of each system against gold scores."""
    name = name_of(evaluation.dataset)
    gold = numpy.array([pair.gold for pair in evaluation.dataset.pairs])
    limits = score_limits(list(evaluation.scores.values()))
    drawings = []
    for result in evaluation.results[: len(evaluation.scores)]:  # over all pairs
        found = f"Spearman {shown_number(result.estimate.value)}"
        title = f"{names[result.system]}\n{found}"
        alt = f"Scores of {result.system} against gold on {name}: {found}."
        scores = evaluation.scores[result.system]
        drawings.append(draw_scatter(gold, scores, limits, title, alt))
    return Picture(f"{name}: the score of each of {len(gold):,} pairs against gold.", drawings)


def _gains(evaluation: IrEvaluation, names: Mapping[str, str]) -> Picture:
    """The differences of the first measure between the first system and the others, by query."""
    name, measure = name_of(evaluation.dataset), evaluation.results[0].over
    first, *others = evaluation.runs
    drawings = []
    for system in others:
        values = evaluation.per_query[system][measure] - evaluation.per_query[first][measure]
        better, worse = int((values > 0).sum()), int((values < 0).sum())
        counts = f"better {better}, same {len(values) - better - worse}, worse {worse}"
        title = f"{names[system]}\nminus {names[first]}: {counts}"
        alt = f"{measure} of {system} minus that of {first} by query: {counts}."
        drawings.append(draw_gains(values, title, alt))
    return Picture(f"{name}: difference of {measure} × 100, a bar for each query.", drawings)
