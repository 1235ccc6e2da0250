"""What frameworks are told of a hit besides its text."""

from __future__ import annotations

from typing import Any

from semsearch.records import SCORE_DECIMALS, Hit, column_name

_OWN = ("score", "title", "start", "end")


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """Score, title (if any) and place of a passage, and its document's metadata.

    A metadata field of one of these names is ``metadata.NAME``.
    """
    found: dict[str, Any] = {"score": round(hit.score, SCORE_DECIMALS)}
    if hit.title is not None:
        found["title"] = hit.title
    found |= {"start": hit.chunk.start, "end": hit.chunk.end}
    return found | {column_name(name, _OWN): value for name, value in hit.metadata.items()}
