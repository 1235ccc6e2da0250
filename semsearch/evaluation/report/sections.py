"""Sections that reports of both kinds have."""

from __future__ import annotations

import math
from collections.abc import Sequence

from semsearch.datasets import RetrievalSet, StsSet
from semsearch.evaluation.report.figures import Point, draw_speed
from semsearch.evaluation.report.labels import difference_cells, short_name
from semsearch.evaluation.report.page import Figure, Section, Table
from semsearch.evaluation.statistics import Difference


def name_of(dataset: StsSet | RetrievalSet) -> str:
    """The name of a set and its split."""
    return f"{dataset.name} {dataset.split}"


def difference_section(
    text: str, caption: str, over: str, rows: Sequence[tuple[str, str, str, str, Difference]]
) -> Section:
    """Differences between systems.

    Args:
        text: an explanation.
        caption: of the table.
        over: the heading of the fourth column.
        rows: the system, the other one, the set, the fourth column, and the difference.
    """
    headings = ["system", "minus", "set", over, ">difference", ">p"]
    cells = [[*row[:4], *difference_cells(row[4])] for row in rows]
    return Section("Differences", text, [Table(caption, headings, cells)])


def speed_section(
    text: str, things: str, plots: Sequence[tuple[str, str, str, Sequence[Point]]]
) -> Section:
    """Plots of speed against quality.

    Args:
        text: what was timed.
        things: what is counted per second.
        plots: the name of a set, the measure, its axis label, and the systems.
    """
    drawings = []
    for name, measure, quality, points in plots:
        known = [
            point
            for point in points
            if not math.isnan(point.place) and not math.isnan(point.interval.value)
        ]
        if known:
            alt = f"{things.capitalize()} per second against {measure} on {name}; see the results."
            drawings.append(draw_speed(known, short_name(name), things, quality, alt))
    figures = [Figure("Lines are 95 % intervals.", drawings)] if drawings else []
    return Section(
        "Speed against quality", f"To the right is faster, up is better. {text}", figures
    )
