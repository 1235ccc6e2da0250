"""Plot of a training run: loss and score by step, score by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.training.scoring import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Weight of each new loss in the smoothed line.
SMOOTHING = 0.2


def draw_curve(
    histories: Sequence[Sequence[dict[str, float]]],
    measures: Sequence[str],
    tests: Sequence[Measured],
    file: Path,
) -> None:
    """Plot all stages side by side, each with its losses above its scores.

    A last column shows the scores by dimension of a model whose vectors can be shortened.

    Args:
        histories: the losses and scores of each stage, by step.
        measures: what the scores of each stage measure; empty where there are none.
        tests: the scores of the finished model.
        file: the image file to write.
    """
    from matplotlib.figure import Figure
    from pandas import Series

    shortened = [test for test in tests if test.dimension]
    rows = 2 if any(measures) else 1
    columns = len(histories) + bool(shortened)
    figure = Figure(figsize=(max(6, 4 * columns), 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex="col")
    if shortened:
        for unused in axes[:-1, -1]:
            unused.set_axis_off()
        _draw_dimensions(axes[-1, -1], shortened)
    for number, (history, measure) in enumerate(zip(histories, measures, strict=True)):
        losses = [(one["step"], one["loss"]) for one in history if "loss" in one]
        scores = [(one["step"], one["score"]) for one in history if "score" in one]
        upper = axes[0, number]
        upper.set_title(f"stage {number + 1}" if len(histories) > 1 else "", fontsize="medium")
        upper.set_ylabel("training loss")
        if losses:
            steps, values = zip(*losses, strict=True)
            upper.plot(steps, values, color="tab:gray", alpha=0.4, linewidth=1)
            upper.plot(
                steps, Series(values).ewm(alpha=SMOOTHING, adjust=False).mean(), color="tab:blue"
            )
        upper.spines[["top", "right"]].set_visible(False)
        axes[-1, number].set_xlabel("step")
        if rows == 1:
            continue
        lower = axes[1, number]
        lower.set_ylabel(measure)
        lower.spines[["top", "right"]].set_visible(False)
        if scores:
            steps, values = zip(*scores, strict=True)
            lower.plot(steps, values, color="tab:blue", marker="o", markersize=4)
            best = max(scores, key=lambda one: one[1])
            lower.annotate(
                f"{best[1]:.2f}", best, xytext=(0, 6), textcoords="offset points", ha="center"
            )
            lower.margins(x=0.1, y=0.2)
    figure.savefig(file, dpi=150)


def _draw_dimensions(axes: Axes, tests: Sequence[Measured]) -> None:
    for name, found in groupby(tests, key=lambda test: test.data):
        points = [(test.dimension, test.score) for test in found]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=name)
        for point in points:
            axes.annotate(
                f"{point[1]:.1f}", point, xytext=(0, 6), textcoords="offset points", ha="center"
            )
    axes.set_xscale("log", base=2)
    ticks = sorted({test.dimension for test in tests if test.dimension})
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("dimensions")
    axes.set_ylabel(tests[0].measure)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1, y=0.2)
    axes.legend(fontsize="small", frameon=False)
