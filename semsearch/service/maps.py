"""The map of an index, as the page draws it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import HTTPException

from semsearch.explore.map import open_map, unchanged_passages
from semsearch.index import Index

#: The most characters of a point's label.
LABEL = 80


def map_of(name: str, index: Index) -> dict[str, Any]:
    """The newest map of an index: the names of its groups, and a list for each member of points.

    Passages that were deleted or changed since the map was made are left out; ``of`` is the number
    of passages in the index.

    Raises:
        HTTPException: there is no map (404).
    """
    found = open_map(index)
    if found is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"'{name}' has no map; make one with: semsearch map --index DIRECTORY",
        )
    rows, passages = [], []
    for row, passage in unchanged_passages(index, found):
        rows.append(row)
        passages.append(passage)
    points = found.points[rows].round(4).T.tolist()
    return {
        "space": found.space,
        "of": index.info().passages,
        "groups": found.names,
        "points": {
            "x": points[0],
            "y": points[1],
            "group": found.groups[rows].tolist(),
            "id": [passage.passage.document_id for passage in passages],
            "start": [passage.passage.start for passage in passages],
            "label": [passage.title or passage.passage.text[:LABEL] for passage in passages],
        },
    }
