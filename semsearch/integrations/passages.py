"""What the adapters share: deletions, filters beside those of users, and the metadata of hits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semsearch.filters import And, Comparison, Condition, In, IsNull, Operator
from semsearch.filters.parsing import condition_of
from semsearch.index import Index
from semsearch.records import SCORE_DECIMALS, Hit, Where, column_name

_OWN = ("score", "title", "start", "end")


def index_at(index: Index | str | Path) -> Index:
    """An index, or the one at a path, which is opened and stays open."""
    return index if isinstance(index, Index) else Index.open(index)


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """Score, title (if any) and position of a passage, and the metadata of its document.

    A metadata field with one of these names becomes ``metadata.NAME``.
    """
    found: dict[str, Any] = {"score": round(hit.score, SCORE_DECIMALS)}
    if hit.title is not None:
        found["title"] = hit.title
    found |= {"start": hit.passage.start, "end": hit.passage.end}
    return found | {column_name(name, _OWN): value for name, value in hit.metadata.items()}


def equals(field: str, value: Any) -> Condition:
    """Require a value of a field; None is a missing one."""
    return IsNull(field) if value is None else Comparison(field, Operator.EQUAL, value)


def conjunction(index: Index, first: Where | None, second: Where | None) -> str | None:
    """An expression that requires both filters; None stands for no condition.

    An empty index, which has no fields yet, accepts any filter: the result is None.

    Raises:
        FilterError: one is invalid.
    """
    given = [where for where in (first, second) if where is not None]
    where = str(And(tuple(map(condition_of, given)))) if given else None
    with index.read() as state:
        return where if state.ids(limit=1) else None


def delete(index: Index, ids: Sequence[str] | None) -> None:
    """Delete documents, or all, once nobody else writes the index; unknown ids are ignored."""
    where = "id is not null" if ids is None else str(In("id", tuple(ids)))
    index.delete(where=where, wait=math.inf)
