"""What is wrong with an index: documents, passages and vectors that lack each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from semsearch.storage.interface import Fault
from semsearch.storage.milvus.connection import Row
from semsearch.storage.milvus.rows import Rows, passage_ids
from semsearch.texts import quantity

#: How many documents a message names.
SHOWN = 5


class Remains(NamedTuple):
    """What killed commands or a damaged server left."""

    documents: list[Row]  #: that lack passages
    passages: list[int]  #: of no document
    vectors: Mapping[int, list[int]]  #: of no passage, by the id of their space
    lacking: Mapping[int, int]  #: how many passages lack a vector, by the id of a space

    def names(self) -> str:
        """Some of the documents."""
        names = ", ".join(f"'{row['id']}'" for row in self.documents[:SHOWN])
        return names + (" …" if len(self.documents) > SHOWN else "")


def find_remains(rows: Rows) -> Remains:
    """Compare the collections with each other."""
    documents = {
        row["document"]: row
        for page in rows.pages(rows.target.name, ["id", "first", "passages"])
        for row in page
    }
    sound: set[int] = set()
    orphans: list[int] = []
    held: Counter[int] = Counter()
    for page in rows.pages(rows.target.passages, ["document"]):
        for row in page:
            owner = documents.get(row["document"])
            if owner and row["passage"] in passage_ids([owner]):
                sound.add(row["passage"])
                held[row["document"]] += 1
            else:
                orphans.append(row["passage"])
    vectors: dict[int, list[int]] = {}
    lacking: dict[int, int] = {}
    for space in rows.record.spaces:
        pages = rows.pages(rows.target.vectors(space), [])
        ids = {row["passage"] for page in pages for row in page}
        vectors[space.id] = sorted(ids - sound)
        lacking[space.id] = len(sound - ids)
    incomplete = [
        row for number, row in documents.items() if not 0 < row["passages"] == held[number]
    ]
    return Remains(incomplete, orphans, vectors, lacking)


def find_faults(rows: Rows) -> list[Fault]:
    """All that is wrong with an index."""
    remains = find_remains(rows)
    faults = []
    if remains.documents:
        count = quantity(len(remains.documents), "document")
        faults.append(Fault(f"{count} without passages: {remains.names()}", repairable=False))
    if remains.passages:
        faults.append(Fault(f"{quantity(len(remains.passages), 'passage')} of no document"))
    for space in rows.record.spaces:
        if remains.vectors[space.id]:
            count = quantity(len(remains.vectors[space.id]), "vector")
            faults.append(Fault(f"space '{space.name}': {count} of no passage"))
        if remains.lacking[space.id] and space.complete:
            count = quantity(remains.lacking[space.id], "passage")
            faults.append(Fault(f"space '{space.name}': {count} without a vector"))
    return faults
