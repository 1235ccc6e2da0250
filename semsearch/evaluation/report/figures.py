"""The figures of a report: matplotlib's, as inline SVG in the colours of the page."""

from __future__ import annotations

import hashlib
import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from semsearch.evaluation.report.labels import name_of, printable, short_name
from semsearch.evaluation.retrieval import IrEvaluation
from semsearch.evaluation.statistics import Interval, Values, shown_number
from semsearch.evaluation.sts import StsEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of the figures, replaced by CSS variables of the page (light and dark).
INK, FAINT, LINE = "#1a1a1a", "#8a8a8a", "#dddddd"
ACCENT, WORSE = "#1f6fb5", "#c0500c"
_CSS = {INK: "ink", FAINT: "faint", LINE: "line", ACCENT: "accent", WORSE: "worse"}

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # searchable text in the page's font
    "svg.hashsalt": "semsearch",  # the same figure has the same ids
    "text.parse_math": False,  # names may contain dollars
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "grid.color": LINE,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}

#: Inches.
ROW, PANEL = 0.3, 0.55


class Picture(NamedTuple):
    """Related drawings, side by side if there is room."""

    caption: str
    drawings: list[str]


class Point(NamedTuple):
    """An estimate in a figure."""

    label: str
    interval: Interval
    published: float  #: NaN if unknown


def estimates(evaluation: StsEvaluation | IrEvaluation) -> Picture:
    """The estimates of an evaluation with their intervals."""
    name = name_of(evaluation.dataset)
    quality = "Spearman" if isinstance(evaluation, StsEvaluation) else "mean"
    panels: dict[str, list[Point]] = {}
    for one in evaluation.results:
        point = Point(short_name(one.system), one.estimate, one.published or math.nan)
        panels.setdefault(one.over, []).append(point)
    alt = f"Estimates on {name} with intervals; the table above has the values."
    drawing = draw_forest(list(panels.items()), f"{quality} × 100", alt)
    caption = f"{name}. Dot: {quality}; line: 95 % interval; hollow diamond: published value."
    return Picture(caption, [drawing])


def details(evaluation: StsEvaluation | IrEvaluation) -> Picture:
    """Scores against gold scores, or differences by query."""
    if isinstance(evaluation, StsEvaluation):
        return _scatters(evaluation)
    return _gains(evaluation)


def _scatters(evaluation: StsEvaluation) -> Picture:
    """The scores of each system against gold scores."""
    name = name_of(evaluation.dataset)
    gold = numpy.array([pair.gold for pair in evaluation.dataset.pairs])
    drawings = []
    for result in evaluation.results[: len(evaluation.scores)]:  # over all pairs
        found = f"Spearman {shown_number(result.estimate.value)}"
        title = f"{short_name(result.system)}\n{found}"
        alt = f"Scores of {result.system} against gold on {name}: {found}."
        drawings.append(draw_scatter(gold, evaluation.scores[result.system], title, alt))
    return Picture(f"{name}: the score of each of {len(gold):,} pairs against gold.", drawings)


def _gains(evaluation: IrEvaluation) -> Picture:
    """The differences of the first measure between the first system and the others, by query."""
    name, measure = name_of(evaluation.dataset), evaluation.results[0].over
    first, *others = evaluation.runs
    drawings = []
    for system in others:
        values = evaluation.per_query[system][measure] - evaluation.per_query[first][measure]
        better, worse = int((values > 0).sum()), int((values < 0).sum())
        counts = f"better {better}, same {len(values) - better - worse}, worse {worse}"
        title = f"{short_name(system)}\nminus {short_name(first)}: {counts}"
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
            axes.set_yticks(range(len(rows)), [row.label for row in rows])
            axes.set_ylim(len(rows) - 0.5, -0.5)
            for y, row in enumerate(rows):
                axes.hlines(y, row.interval.low, row.interval.high, color=ACCENT)
                axes.plot(row.interval.value, y, "o", color=ACCENT)
                axes.plot(row.published, y, "D", color=INK, fillstyle="none")
        grid[-1, 0].set_xlabel(axis_label)

    return draw(5.0, sum(heights) + 0.4, alt, paint)


def draw_scatter(gold: Values, scores: Values, title: str, alt: str) -> str:
    """Scores against gold scores, shape (pairs,): cells coloured by their number."""
    from matplotlib.colors import LinearSegmentedColormap

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        density = LinearSegmentedColormap.from_list("", [f"{ACCENT}1f", ACCENT])
        axes.hexbin(gold, scores, gridsize=25, bins="log", mincnt=1, cmap=density)
        axes.set(xlabel="gold", ylabel="score", title=title)

    return draw(3.4, 3.2, alt, paint)


def draw_gains(differences: Values, title: str, alt: str) -> str:
    """The difference for each query, shape (queries,), in falling order."""
    falling = numpy.sort(differences)[::-1]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.stairs(falling.clip(min=0), fill=True, color=ACCENT)
        axes.stairs(falling.clip(max=0), fill=True, color=WORSE)
        axes.grid(axis="y")
        axes.set(title=title, xlabel="queries, by difference", ylabel="difference")

    return draw(4.2, 3.0, alt, paint)


def draw(width: float, height: float, alt: str, paint: Callable[[Figure], None]) -> str:
    """Draw a figure in the style of the page; returns an SVG element.

    Args:
        width: in inches.
        height: in inches.
        alt: a description for screen readers.
        paint: adds axes to the figure.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    picture = io.StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The page has a font for characters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(width, height))
        paint(figure)
        unnamed = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(picture, format="svg", metadata=unnamed)
    svg = picture.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # would apply to the whole page
    key = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r"<[^>]*>", lambda tag: _inline(tag[0], key), svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(printable(alt))}" ', 1)


def _inline(tag: str, key: str) -> str:
    """A tag whose ids begin with a key, and whose colours are those of the page."""
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", tag)
    for colour, variable in _CSS.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag
