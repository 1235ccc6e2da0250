"""The map of an index, as the page draws it and as a file for other programs."""

from __future__ import annotations

import io
from collections import Counter
from http import HTTPStatus
from itertools import groupby
from typing import Any

import numpy
from fastapi import HTTPException

from semsearch.explore.export import write_parquet
from semsearch.explore.map import Map, open_map, unchanged_passages
from semsearch.index import Index
from semsearch.records import Document
from semsearch.storage.interface import FoundPassage

#: The most characters of a point's label.
LABEL = 80
#: The most colours of a field, without that of other values; the ranges of a field of numbers.
COLOURS, RANGES = 11, 6
#: The columns of a map's file, with the Arrow names of their types.
COLUMNS = {"id": "string", "title": "string", "text": "string", "x": "float", "y": "float"}


def map_of(index: Index) -> dict[str, Any]:
    """The newest map of an index: the names of its groups, and a list for each member of points.

    Passages that were deleted or changed since the map was made are left out; ``of`` is the number
    of passages in the index.

    Raises:
        HTTPException: there is no map (404).
    """
    found, rows, passages = _opened(index)
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


def colours_of(index: Index, field: str) -> dict[str, Any]:
    """The values of a field, or ranges of them, and the place of the value of each point.

    The points are those of `map_of`. The last value stands for all others; of a list, the first
    one counts.

    Raises:
        HTTPException: there is no map (404).
    """
    _, _, passages = _opened(index)
    documents = _documents(index, passages)
    held = [document and document.metadata.get(field) for document in documents]
    values = [next(iter(one), None) if isinstance(one, list) else one for one in held]
    texts = ["" if value is None else str(value) for value in values]
    numbers = [value for value in values if isinstance(value, int | float)]
    in_ranges = len(numbers) > len(values) // 2 and len(set(numbers)) > COLOURS
    if in_ranges:
        cuts = numpy.quantile(numbers, numpy.linspace(0, 1, RANGES + 1)[1:-1], method="nearest")
        by_range = groupby(sorted(set(numbers)), lambda one: (cuts <= one).sum())
        ranges = [list(group) for _, group in by_range]
        names = [f"{group[0]} to {group[-1]}" for group in ranges]
        place = {str(one): place for place, group in enumerate(ranges) for one in group}
    else:
        if any(len(text) > 4 and text[:4].isdigit() and text[4] == "-" for text in texts):
            texts = [text[:4] for text in texts]  # the years of dates
        names = [text for text, _ in Counter(filter(None, texts)).most_common(COLOURS)]
        place = {text: place for place, text in enumerate(names)}
    places = [place.get(text, len(names)) for text in texts]
    return {"names": [*names, "other"], "places": places, "ranges": in_ranges}


def map_file_of(index: Index) -> bytes:
    """The points with their passages and metadata as Parquet, as Embedding Atlas reads it.

    Raises:
        HTTPException: there is no map (404).
    """
    found, rows, passages = _opened(index)
    table = [
        {
            **({} if document is None else document.metadata),
            "id": passage.passage.document_id,
            "title": passage.title,
            "text": passage.passage.text,
            "x": float(found.points[row, 0]),
            "y": float(found.points[row, 1]),
            "group": found.names[found.groups[row]],
        }
        for row, passage, document in zip(rows, passages, _documents(index, passages), strict=True)
    ]
    stream = io.BytesIO()
    write_parquet(stream, table, COLUMNS)
    return stream.getvalue()


def _opened(index: Index) -> tuple[Map, list[int], list[FoundPassage]]:
    """The map of an index, and the rows and passages that are unchanged.

    Raises:
        HTTPException: there is no map (404).
    """
    found = open_map(index)
    if found is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"'{index.path.name}' has no map; make one with: semsearch map --index DIRECTORY",
        )
    unchanged = list(unchanged_passages(index, found))
    return found, [row for row, _ in unchanged], [passage for _, passage in unchanged]


def _documents(index: Index, passages: list[FoundPassage]) -> list[Document | None]:
    """The documents of passages; None for those deleted meanwhile."""
    ids = [passage.passage.document_id for passage in passages]
    with index.read() as state:
        documents = state.documents(list(dict.fromkeys(ids)))
    return [documents.get(one) for one in ids]
