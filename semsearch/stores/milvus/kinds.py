"""The kinds of values in metadata, counted as the catalogue keeps them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from semsearch.filters.times import instant
from semsearch.records import Kind

Counts = Mapping[str, Mapping[str, int]]


def kind_of(value: Any) -> Kind:
    """The kind of one value."""
    if isinstance(value, str):
        return Kind.TEXT if instant(value) is None else Kind.DATE
    kinds = {bool: Kind.BOOLEAN, dict: Kind.OBJECT, list: Kind.LIST, type(None): Kind.NULL}
    return kinds.get(type(value), Kind.NUMBER)


def elements(value: Any) -> list[Any]:
    """The elements of a list; any other value, and an empty list, as the only one."""
    return value if isinstance(value, list) and value else [value]


def counted(counts: Counts, added: Iterable[str], removed: Iterable[str]) -> Counts:
    """The counts after some documents have come and others have gone, given by their metadata."""
    totals = Counter(
        {(name, kind): count for name, kinds in counts.items() for kind, count in kinds.items()}
    )
    totals.update(each for metadata in added for each in _kinds(metadata))
    totals.subtract(each for metadata in removed for each in _kinds(metadata))
    found: dict[str, dict[str, int]] = {}
    for (name, kind), count in sorted(totals.items(), key=lambda item: (item[0][0], -item[1])):
        if count > 0:
            found.setdefault(name, {})[kind] = count
    return found


def _kinds(metadata: str) -> Iterator[tuple[str, str]]:
    for name, value in json.loads(metadata).items():
        prefix = "list of " if isinstance(value, list) and value else ""
        yield from {(name, f"{prefix}{kind_of(each).value}") for each in elements(value)}
