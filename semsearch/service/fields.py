"""Describes the metadata fields of an index, so that the page can offer filters."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from semsearch.index import Index

#: The number of documents that values are collected from.
SAMPLE = 10_000
#: The most values per field, and their maximum length in characters.
VALUES, LONGEST = 50, 100


def described_fields(index: Index) -> list[dict[str, Any]]:
    """The name, kinds, most frequent values and bounds of each field.

    Values are from the first 10,000 documents. Texts have frequent values, as (value, number of
    documents); numbers have bounds.
    """
    fields = index.info().fields
    texts: dict[str, Counter[str]] = {field.name: Counter() for field in fields}
    bounds: dict[str, list[Any]] = {field.name: [] for field in fields}
    for document in islice(index, SAMPLE):
        for name, value in document.metadata.items():
            if name not in texts:  # a writer has just added it
                continue
            items = value if isinstance(value, list) else [value]
            texts[name].update(
                {item for item in items if isinstance(item, str) and len(item) <= LONGEST}
            )
            numbers = [
                item
                for item in items
                if isinstance(item, int | float) and not isinstance(item, bool)
            ]
            if numbers:
                bounds[name] = [min(numbers + bounds[name]), max(numbers + bounds[name])]
    return [
        {
            "name": field.name,
            "kinds": list(field.kinds),
            "values": texts[field.name].most_common(VALUES),
            "least": bounds[field.name][0] if bounds[field.name] else None,
            "greatest": bounds[field.name][1] if bounds[field.name] else None,
        }
        for field in fields
    ]
