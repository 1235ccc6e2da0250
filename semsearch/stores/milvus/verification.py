"""Consistency checks of an index's collections, and repairs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy

from semsearch.protocols import off_unit
from semsearch.stores.milvus.building import are_words_counted
from semsearch.stores.milvus.collections import STEP, WORDS, documents_of, passages_of, vectors_of
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.kinds import Counts, counted
from semsearch.stores.milvus.reader import rows_at_once
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.protocol import EVERYTHING, Fault, Space
from semsearch.texts import quantity

#: How many documents a message names.
SHOWN = 5

logger = logging.getLogger(__name__)


class _Owner(NamedTuple):
    """A document's row: what the rows of the other collections must match."""

    id: str
    key: str
    version: int
    text_version: int
    passages: int


def find_faults(connection: Connection, state: MilvusState) -> list[Fault]:
    """All that is wrong with an index."""
    owners = _owners(state)
    faults = []
    held, orphans = _passages(connection, state, owners)
    lacking = [one.id for number, one in owners.items() if held[number] != one.passages]
    if lacking:
        faults.append(
            Fault(
                f"{quantity(len(lacking), 'document')} without passages: {_named(lacking)}",
                repairable=False,
            )
        )
    if orphans:
        faults.append(Fault(f"{quantity(len(orphans), 'passage')} of no document"))
    for space in state.vector_spaces():
        found, left_over, damaged = _vectors(connection, state, space, owners)
        without = sum(held[number] - found[number] for number in owners)
        if without and space.complete:
            faults.append(
                Fault(f"space '{space.name}': {quantity(without, 'passage')} without a vector")
            )
        if left_over:
            faults.append(
                Fault(f"space '{space.name}': {quantity(len(left_over), 'vector')} of no document")
            )
        if damaged:
            faults.append(
                Fault(f"space '{space.name}': {quantity(len(damaged), 'damaged vector')}")
            )
    if state.has_words and not are_words_counted(connection, state):
        faults.append(Fault("BM25's counts of words are not those of the passages"))
    if recount(state) != state.field_counts:
        faults.append(Fault("the counts of fields are not those of the documents"))
    return faults


def sweep(connection: Connection, state: MilvusState, *, thoroughly: bool = False) -> None:
    """Delete the rows that no document names.

    Args:
        connection: to Milvus.
        state: the present one.
        thoroughly: whether damaged vectors, and documents that lack passages, go as well.
    """
    owners = _owners(state)
    held, orphans = _passages(connection, state, owners)
    lacking = {number for number, one in owners.items() if held[number] != one.passages}
    if lacking and thoroughly:
        names = [owners[number].id for number in sorted(lacking)]
        logger.warning(
            "documents that lack passages are removed: %s; index them again", _named(names)
        )
        connection.delete(
            documents_of(connection), [owners[number].key for number in sorted(lacking)]
        )
        owners = {number: one for number, one in owners.items() if number not in lacking}
        _, orphans = _passages(connection, state, owners)
    connection.delete(passages_of(connection), orphans)
    for space in state.vector_spaces():
        _, left_over, damaged = _vectors(connection, state, space, owners, tested=thoroughly)
        connection.delete(vectors_of(connection, space), left_over + damaged)


def recount(state: MilvusState) -> Counts:
    """The kinds of values that the documents' fields hold."""
    counts: Counts = {}
    for rows in state.selected(EVERYTHING, ["metadata"]):
        counts = counted(counts, (row["metadata"] for row in rows), [])
    return counts


def _owners(state: MilvusState) -> dict[int, _Owner]:
    return {
        row["document"]: _Owner(*(row[name] for name in _Owner._fields))
        for rows in state.selected(EVERYTHING, _Owner._fields)
        for row in rows
    }


def _passages(
    connection: Connection, state: MilvusState, owners: Mapping[int, _Owner]
) -> tuple[Counter[int], list[int]]:
    """How many passages each document has, and those of none."""
    held: Counter[int] = Counter()
    orphans: list[int] = []
    for rows in state.reader.in_order(passages_of(connection), "chunk", ["document", "version"]):
        for row in rows:
            owner = owners.get(row["document"])
            if owner and owner.text_version == row["version"]:
                held[row["document"]] += 1
            else:
                orphans.append(row["chunk"])
    return held, orphans


def _vectors(
    connection: Connection,
    state: MilvusState,
    space: Space,
    owners: Mapping[int, _Owner],
    *,
    tested: bool = True,
) -> tuple[Counter[int], list[int], list[int]]:
    """How many vectors each document has, those of none, and, if tested, the damaged ones."""
    held: Counter[int] = Counter()
    orphans: list[int] = []
    damaged: list[int] = []
    is_tested = tested and space != WORDS  # whose vectors have any length
    fields = ["chunk", "document", "version", *(["vector"] if is_tested else [])]
    collection, at_once = vectors_of(connection, space), min(rows_at_once(space), STEP)
    for rows in state.reader.in_order(collection, "row", fields, max_step=at_once):
        for row, is_off in zip(rows, _off(rows) if is_tested else repeat(False), strict=False):
            owner = owners.get(row["document"])
            if not owner or owner.version != row["version"]:
                orphans.append(row["row"])
            elif is_off:
                damaged.append(row["row"])
            else:
                held[row["document"]] += 1
    return held, orphans, damaged


def _off(rows: Sequence[Row]) -> Iterator[bool]:
    matrix = numpy.array([row["vector"] for row in rows], numpy.float32)
    return iter(off_unit(matrix).tolist())


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
