"""The figures of a report, by section: captions with SVG elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy

from semsearch.evaluation.report.drawing import ACCENT, FAINT, INK, PAPER, WORSE, draw
from semsearch.evaluation.report.labels import name_of, short_name, short_names
from semsearch.evaluation.retrieval import IrEvaluation
from semsearch.evaluation.statistics import Interval, Values, shown_number
from semsearch.evaluation.sts import StsEvaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More points than this are drawn as cells, coloured by density.
DOTS = 400
CELLS_ACROSS = 26

#: Inches.
ROW, PANEL = 0.3, 0.55


class Picture(NamedTuple):
    """Related drawings, side by side if there is room."""

    caption: str
    drawings: list[str]


class Pictures(NamedTuple):
    """The figures of a report."""

    results: list[Picture]  #: estimates with their intervals
    details: list[Picture]  #: scores against gold scores, or differences by query
    speed: Picture


class Point(NamedTuple):
    """A system in a figure."""

    label: str
    place: float  #: the published value in a forest plot, or the speed; NaN if unknown
    interval: Interval


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
    every = numpy.concatenate(list(evaluation.scores.values()))
    limits = _widened(float(every.min()), float(every.max()))
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


def draw_forest(groups: Sequence[tuple[str, Sequence[Point]]], axis_label: str, alt: str) -> str:
    """A dot with its interval for each estimate, and a hollow mark for published values."""
    heights = [PANEL + ROW * len(rows) for _, rows in groups]

    def paint(figure: Figure) -> None:
        grid = figure.subplots(
            len(groups), squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights}
        )
        for axes, (title, rows) in zip(grid[:, 0], groups, strict=True):
            axes.set_title(title, fontweight="bold")
            axes.grid(axis="x")
            axes.tick_params(axis="y", length=0)
            axes.set_yticks(range(len(rows)), [row.label for row in rows])
            axes.set_ylim(len(rows) - 0.4, -0.6)
            for y, row in enumerate(rows):
                axes.hlines(y, row.interval.low, row.interval.high, color=ACCENT, linewidth=2)
                axes.plot(row.interval.value, y, "o", color=ACCENT, markersize=6)
                axes.plot(row.place, y, "D", markersize=8, color=INK, markerfacecolor="none")
        grid[-1, 0].set_xlabel(axis_label)

    return draw(5.0, sum(heights) + 0.4, alt, paint)


def draw_scatter(
    gold: Values, scores: Values, limits: tuple[float, float], title: str, alt: str
) -> str:
    """Scores against gold scores, shape (pairs,): points, or cells coloured by their number."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = _widened(float(gold.min()), float(gold.max()))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        if len(gold) <= DOTS:
            axes.plot(gold, scores, "o", color=ACCENT, alpha=0.35, markersize=4, markeredgewidth=0)
        else:
            axes.hexbin(
                gold,
                scores,
                gridsize=CELLS_ACROSS,
                bins="log",
                mincnt=1,
                cmap=LinearSegmentedColormap.from_list("", [f"{ACCENT}1f", ACCENT]),
                linewidths=0,
                extent=(low, high, *limits),
            )
        axes.set(xlim=(low, high), ylim=limits, xlabel="gold", ylabel="score", title=title)

    return draw(3.4, 3.2, alt, paint)


def draw_gains(differences: Values, title: str, alt: str) -> str:
    """The difference for each query, shape (queries,), in falling order."""
    falling = numpy.sort(differences)[::-1]
    edges = numpy.arange(len(falling) + 1)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for part, colour in ((falling.clip(min=0), ACCENT), (falling.clip(max=0), WORSE)):
            axes.stairs(part, edges, fill=True, color=colour, linewidth=0)
        axes.axhline(0, color=FAINT, linewidth=0.8)
        axes.grid(axis="y")
        axes.set(xlim=(0, len(falling)), ylim=(-105, 105), title=title, ylabel="difference")
        axes.set_xlabel("queries, by difference")

    return draw(4.2, 3.0, alt, paint)


def draw_speed(points: Sequence[Point], title: str, things: str, quality: str, alt: str) -> str:
    """A labelled dot with its interval for each system; right is faster, up is better."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    rates = [point.place for point in points]
    steps = (1.0, 3.0) if max(rates) < 30 * min(rates) else (1.0,)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_xlim(min(rates) / 3, max(rates) * 3)
        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.grid()
        for point in points:
            axes.vlines(
                point.place, point.interval.low, point.interval.high, color=ACCENT, linewidth=2
            )
            axes.plot(point.place, point.interval.value, "o", color=ACCENT, markersize=7)
        axes.set(title=title, xlabel=f"{things} per second", ylabel=quality)
        _label_beside(axes, points)

    return draw(4.8, 3.2, alt, paint)


def _label_beside(axes: Axes, points: Sequence[Point]) -> None:
    """Write names in the right margin, without overlaps, with lines to their dots."""
    low, high = axes.get_ylim()
    apart = 0.07 * (high - low)
    height = -math.inf
    for point in sorted(points, key=lambda one: one.interval.value):
        height = max(height + apart, point.interval.value)
        axes.annotate(
            point.label,
            (point.place, point.interval.value),
            (1.03, height),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkB": 6},
            bbox={"color": PAPER, "pad": 1, "linewidth": 0},
        )


def _widened(low: float, high: float) -> tuple[float, float]:
    """Limits with a margin, also for a single value."""
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin
