"""The table of passages that a map shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from semsearch.explore.map import Map, short_hash
from semsearch.index import Index
from semsearch.records import METADATA_PREFIX
from semsearch.storage.interface import FoundPassage

if TYPE_CHECKING:
    import pyarrow

#: Columns that begin with two underscores are hidden.
ROW, X, Y, START = "__row", "__x", "__y", "__start"
#: The columns that precede those of the metadata.
COLUMNS = ("group", "title", "text", "id")
BLOCK = 1_000


class MapTable(NamedTuple):
    """The passages of a map that are still in the index."""

    table: pyarrow.Table  #: a row for each passage
    fields: dict[str, str]  #: the column of each metadata field


def map_table(index: Index, found: Map) -> MapTable:
    """The table of a map: points, groups, texts, ids, titles, metadata.

    Passages that were deleted or changed since the map was created are left out.
    """
    import pyarrow

    rows, passages = [], []
    for row, passage in _passages(index, found):
        rows.append(row)
        passages.append(passage)
    points = found.points[rows]
    columns: dict[str, Any] = {
        ROW: numpy.arange(len(rows), dtype=numpy.int32),
        X: points[:, 0],
        Y: points[:, 1],
        START: numpy.array([passage.passage.start for passage in passages], numpy.int32),
        "group": pyarrow.array(
            [found.names[group] for group in found.groups[rows]], pyarrow.string()
        ),
        "title": pyarrow.array([passage.title for passage in passages], pyarrow.string()),
        "text": pyarrow.array([passage.passage.text for passage in passages], pyarrow.string()),
        "id": pyarrow.array(
            [passage.passage.document_id for passage in passages], pyarrow.string()
        ),
    }
    fields = {}
    taken = {*COLUMNS}  # case-folded: DuckDB ignores the case of names
    for field in index.info().fields:
        name = field.name.lstrip("_") or "field"
        while name.casefold() in taken:
            name = METADATA_PREFIX + name
        taken.add(name.casefold())
        values = [passage.metadata.get(field.name) for passage in passages]
        columns[name] = _column(values, field.kinds)
        fields[field.name] = name
    return MapTable(pyarrow.table(columns), fields)


def _passages(index: Index, found: Map) -> Iterator[tuple[int, FoundPassage]]:
    """The rows whose passages are unchanged."""
    with index.read() as state:
        for start in range(0, len(found), BLOCK):
            ids = found.passage_ids[start : start + BLOCK].tolist()
            fetched = state.fetch(ids)
            for row, passage_id in enumerate(ids, start):
                passage = fetched.get(passage_id)
                if passage and short_hash(passage.passage.text) == found.hashes[row]:
                    yield row, passage


def _column(values: Sequence[Any], kinds: Mapping[str, int]) -> pyarrow.Array:
    """The values of a field; one with several types, or numbers beyond floats, becomes text."""
    import pyarrow

    found = set(kinds) - {"null"}
    if found == {"number"}:
        present = [value for value in values if value is not None]
        if all(isinstance(value, int) and abs(value) < 2**63 for value in present):
            return pyarrow.array(values, pyarrow.int64())
        with suppress(OverflowError):
            floats = [value if value is None else float(value) for value in values]
            return pyarrow.array(floats, pyarrow.float64())
    if found == {"boolean"}:
        return pyarrow.array(values, pyarrow.bool_())
    if found and found <= {"list", "list of text"}:
        return pyarrow.array(values, pyarrow.list_(pyarrow.string()))
    texts = pyarrow.array(
        [
            value if value is None or isinstance(value, str) else json.dumps(value)
            for value in values
        ],
        pyarrow.string(),
    )
    if found == {"date"}:
        for zone in (None, "UTC"):  # times without a UTC offset, or with one
            with suppress(pyarrow.ArrowException):
                # Embedding Atlas does not know DuckDB's timestamps in seconds.
                return texts.cast(pyarrow.timestamp("us", zone)).cast(pyarrow.timestamp("us"))
    return texts
