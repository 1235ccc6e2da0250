"""What the metadata fields of an index hold, so that a page can offer filters."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from semsearch.index import Index

#: From so many documents, the first ones, values are taken.
SAMPLE = 10_000
#: How many values are told, of how many characters at most.
VALUES, LONGEST = 50, 100


def described_fields(index: Index) -> list[dict[str, Any]]:
    """Each field's name, kinds of values, most frequent values, and the least and greatest.

    Values are those of the first 10,000 documents. Texts have frequent values, as (value, number
    of documents); numbers and dates have bounds.
    """
    fields = index.info().fields
    texts: dict[str, Counter[str]] = {field.name: Counter() for field in fields}
    bounds: dict[str, list[Any]] = {field.name: [] for field in fields}
    for document in islice(index, SAMPLE):
        for name, value in document.metadata.items():
            held = value if isinstance(value, list) else [value]
            texts[name].update(
                {one for one in held if isinstance(one, str) and len(one) <= LONGEST}
            )
            numbers = [
                one for one in held if isinstance(one, int | float) and not isinstance(one, bool)
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
