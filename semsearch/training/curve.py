"""The curve of a training run, as a picture: the loss and the score on the development set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: By how much a loss counts for the smooth line.
SMOOTHING = 0.2


def draw_curve(
    histories: Sequence[Sequence[dict[str, float]]], measures: Sequence[str], file: Path
) -> None:
    """Draw all stages side by side, each with its losses above its scores.

    Args:
        histories: for each stage its losses and scores by step.
        measures: what the scores of each stage measure; empty where there are none.
        file: where the picture goes.
    """
    from matplotlib.figure import Figure

    rows = 2 if any(measures) else 1
    figure = Figure(figsize=(max(6, 4 * len(histories)), 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, len(histories), squeeze=False, sharex="col")
    for number, (history, measure) in enumerate(zip(histories, measures, strict=True)):
        losses = [(one["step"], one["loss"]) for one in history if "loss" in one]
        scores = [(one["step"], one["score"]) for one in history if "score" in one]
        upper = axes[0, number]
        upper.set_title(f"stage {number + 1}" if len(histories) > 1 else "", fontsize="medium")
        upper.set_ylabel("training loss")
        if losses:
            steps, values = zip(*losses, strict=True)
            upper.plot(steps, values, color="tab:gray", alpha=0.4, linewidth=1)
            upper.plot(steps, _smooth(values), color="tab:blue")
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


def _smooth(values: Sequence[float]) -> list[float]:
    """The exponentially weighted mean up to each value."""
    smooth = [values[0]]
    for value in values[1:]:
        smooth.append((1 - SMOOTHING) * smooth[-1] + SMOOTHING * value)
    return smooth
