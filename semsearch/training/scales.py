"""Conversion of gold scores to the scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

from semsearch.errors import ArgumentError, BadRowError
from semsearch.training.examples import Notify

#: Common scales, the narrowest first.
KNOWN_SCALES = ((0.0, 1.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))


def scaled(
    scores: Sequence[float],
    places: Sequence[str],
    scale: tuple[float, float] | None,
    name: str,
    notify: Notify,
) -> tuple[list[float], tuple[float, float]]:
    """The scores rescaled to 0 to 1, and their original scale.

    Args:
        scores: as read.
        places: the location of each score, for messages.
        scale: the lowest and the highest possible score; None takes the narrowest known scale
            that contains all scores, and reports it.
        name: name of the set in messages.
        notify: called with the guessed scale.

    Raises:
        ArgumentError: the scale is empty, or no known scale fits.
        BadRowError: a score is outside the scale.
    """
    if scale is None:
        scale = _fitting(scores, name)
        low, high = scale
        notify(
            f"{name}: gold scores from {min(scores):g} to {max(scores):g} are assumed to be on the "
            f"scale from {low:g} to {high:g}; --scale sets another"
        )
    low, high = scale
    if not low < high:
        raise ArgumentError(f"a scale goes from a lower to a higher score, not {low:g} to {high:g}")
    for score, place in zip(scores, places, strict=True):
        if not low <= score <= high:
            raise BadRowError(place, f"score {score:g} is outside the scale {low:g} to {high:g}")
    return [(score - low) / (high - low) for score in scores], scale


def _fitting(scores: Sequence[float], name: str) -> tuple[float, float]:
    for low, high in KNOWN_SCALES:
        if all(low <= score <= high for score in scores):
            return low, high
    raise ArgumentError(
        f"{name}: gold scores from {min(scores):g} to {max(scores):g} are on no known scale; "
        "name it with --scale LOW HIGH"
    )
