"""The vectors of a space in one state, and how they are searched.

Most are in a snapshot; recent ones, which are newer, are not yet.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy
from sqlalchemy import Connection, func, select

from semsearch.protocols import Matrix
from semsearch.storage.interface import ScoredPassage
from semsearch.storage.spaces import Space
from semsearch.storage.sqlite.restrictions import Restricted, best_passages, owners
from semsearch.storage.sqlite.schema import documents, passages
from semsearch.storage.sqlite.spaces import (
    deleted_passages,
    open_snapshot,
    snapshot_record,
    vector_blocks,
)
from semsearch.vector_indexes import Ids
from semsearch.vector_indexes.flat import VectorIndex, ranked

logger = logging.getLogger(__name__)

#: Passages searched in place of deleted ones and further ones of a document.
SPARE = 8
#: If allowed documents are rarer among the nearest than overall, they are listed once the expected
#: number of matches exceeds the wanted number by this factor.
MAX_LEFT_OUT = 50
#: By how many standard deviations the expected number of matches exceeds the wanted one: if matches
#: are spread at random, fewer than one query in a hundred has to be searched again.
SPARE_DEVIATIONS = 3


class VectorView:
    """The vectors of a space in the state that a connection reads.

    Recent vectors, which the snapshot does not have, are searched exactly; without a usable
    snapshot, all are recent. Vectors deleted since it was written are still found; callers drop ids
    that the database no longer has. What an earlier view has loaded is not read again.
    """

    def __init__(
        self,
        connection: Connection,
        directory: Path,
        space: Space,
        earlier: VectorView | None = None,
    ) -> None:
        self._record = record = snapshot_record(connection, space)
        self._snapshot: VectorIndex | None = None
        recent: list[tuple[Ids, Matrix]] = []
        last = 0
        if earlier and earlier._record == record:
            self._snapshot = earlier._snapshot
            recent.append((earlier._recent.ids, earlier._recent.matrix))
            last = int(earlier._indexes[-1].ids[-1]) if earlier._indexes else 0
        elif record:
            self._snapshot = open_snapshot(directory, space, record)
            if self._snapshot is not None:
                last = record.last_passage_id
            else:
                logger.warning(
                    "the snapshot of space '%s' is missing or damaged, which makes searches slow; "
                    "the next `semsearch index` rewrites it",
                    space.name,
                )
        recent += vector_blocks(connection, space, last)
        count = sum(len(ids) for ids, _ in recent)
        self._recent: VectorIndex = VectorIndex.build(space.dimension, count, recent)
        both = self._snapshot, self._recent
        self._indexes: list[VectorIndex] = [index for index in both if index]
        self._per_document = _passages_per_document(connection)
        self._deleted = deleted_passages(connection) - (record.deleted if record else 0)

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    def reach(self, k: int) -> int:
        """How many of the nearest passages to search for the best ones of `k` documents.

        Further passages of a document and deleted ones take up places.
        """
        spare = SPARE if self._per_document > 1 or self._deleted else 0
        return math.ceil(k * min(2, self._per_document)) + spare

    def search(self, queries: Matrix, n: int, allowed: Ids | None = None) -> tuple[Matrix, Ids]:
        """Cosines and passage ids of the `n` nearest of each query, both of shape (m, n).

        Equal scores, which have six digits, are ordered by passage id; missing results have the id
        -1. `allowed` are sorted ids of passages; None allows all.
        """
        results = [index.search(queries, n, allowed) for index in self._indexes]
        if len(results) == 1:
            return results[0]
        scores, ids = ranked(
            *(numpy.concatenate(parts, axis=1) for parts in zip(*results, strict=True))
        )
        return scores[:, :n], ids[:, :n]


def search_vectors(
    connection: Connection, view: VectorView, restricted: Restricted, queries: Matrix, k: int
) -> list[list[ScoredPassage]]:
    """The `k` best passages of each query; see `semsearch.storage.interface.Reader`.

    If many documents are allowed, more passages are searched and those of others dropped; if few
    are, their passages are listed first, and only these are searched.
    """
    share, clause = restricted.share, restricted.clause
    allowed = restricted.passages(connection) if restricted.are_few else None
    wanted = view.reach(k)
    n = wanted if allowed is not None else _depth(wanted, share)
    found: list[list[ScoredPassage]] = [[] for _ in queries]
    open_queries = numpy.arange(len(queries))
    while True:
        reach = len(view) if allowed is None else len(allowed)
        n = min(n, reach)
        if not n or not len(open_queries):
            return found
        scores, ids = view.search(queries[open_queries], n, allowed)
        documents = owners(connection, numpy.unique(ids), clause if allowed is None else None)
        for query, row_scores, row_ids in zip(open_queries, scores, ids, strict=True):
            scored = zip(row_scores[:n].tolist(), row_ids[:n].tolist(), strict=True)
            found[query] = best_passages(scored, documents, k, restricted.per_document)
        if n == reach:
            return found
        # Further passages of a document, deleted ones, or ones of other documents took up places:
        # search further.
        open_queries = numpy.array([query for query in open_queries if len(found[query]) < k])
        n = min(4 * n, reach)
        is_rare = n * share > wanted * MAX_LEFT_OUT
        if len(open_queries) and allowed is None and clause is not None and is_rare:
            allowed, n = restricted.passages(connection), wanted


def _depth(wanted: int, share: float) -> int:
    """How many nearest passages to search so that `wanted` of them match, if this share does."""
    return math.ceil((wanted + SPARE_DEVIATIONS * math.sqrt(wanted * (1 - share))) / share)


def _passages_per_document(connection: Connection) -> float:
    """Estimated by the highest ids, as counting takes long."""
    last_passage = connection.scalar(select(func.max(passages.c.passage_id))) or 0
    last_document = connection.scalar(select(func.max(documents.c.document_id)))
    return float(last_passage / last_document) if last_document else 1.0
