"""Filters of frameworks beside those of users, and the metadata of hits."""

from __future__ import annotations

from typing import Any

from semsearch.filters import And
from semsearch.filters.parsing import parse
from semsearch.records import SCORE_DECIMALS, Hit, column_name

_OWN = ("score", "title", "start", "end")


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """Score, title (if any) and position of a passage, and the metadata of its document.

    A metadata field with one of these names becomes ``metadata.NAME``.
    """
    found: dict[str, Any] = {"score": round(hit.score, SCORE_DECIMALS)}
    if hit.title is not None:
        found["title"] = hit.title
    found |= {"start": hit.passage.start, "end": hit.passage.end}
    return found | {column_name(name, _OWN): value for name, value in hit.metadata.items()}


def conjunction(first: str | None, second: str | None) -> str | None:
    """An expression that requires both expressions; None stands for no condition.

    Raises:
        FilterError: one of two is invalid.
        ArgumentError: one of two is not a string.
    """
    if first is None or second is None:
        return second if first is None else first
    return str(And((parse(first), parse(second))))
