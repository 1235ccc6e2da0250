"""Restrictions of a search to some documents: as SQL conditions, or as lists of passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy
from sqlalchemy import ColumnElement, Connection, ScalarSelect, and_, case, func, select

from semsearch.storage.interface import Restriction, ScoredPassage
from semsearch.storage.sqlite.fields import scalar_fields
from semsearch.storage.sqlite.schema import (
    documents,
    passages,
    passages_fts,
    read_settings,
    rows_for,
    values,
    values_later,
)
from semsearch.vector_indexes import Ids

if TYPE_CHECKING:
    from semsearch.filters import Condition

#: Documents sampled to estimate the share that is allowed.
SAMPLE_DOCUMENTS = 500
#: Below this share, their passages are listed before a search.
FEW = 0.02

# Built once, because SQLAlchemy takes longer to build a statement than to run it.
_OWNERS = select(passages.c.passage_id, passages.c.document_id).where(
    passages.c.passage_id.in_(values_later("passage_ids"))
)


class Restricted:
    """The documents that a restriction allows, in one state of the index."""

    def __init__(self, connection: Connection, restriction: Restriction) -> None:
        self.per_document = restriction.per_document
        #: In SQL; None if all documents are allowed.
        self.clause = _clause(connection, restriction)
        #: The estimated share of documents that are allowed.
        self.share = 1 if self.clause is None else _sampled_share(connection, self.clause)
        self.are_few = self.share < FEW
        self._passages: Ids | None = None

    def passages(self, connection: Connection) -> Ids:
        """The sorted ids of all passages of these documents."""
        if self._passages is None:
            query = select(passages.c.passage_id)
            if self.clause is not None:
                query = query.join(documents).where(self.clause)
            self._passages = numpy.sort(numpy.array(connection.scalars(query).all(), numpy.int64))
        return self._passages


def sql_condition(connection: Connection, condition: Condition) -> ColumnElement[bool]:
    """The condition in SQL that holds for documents that meet `condition`."""
    from semsearch.storage.sqlite.conditions import to_sql  # of filters alone

    return to_sql(condition, scalars=scalar_fields(connection))


def owners(
    connection: Connection, passage_ids: Ids, clause: ColumnElement[bool] | None
) -> dict[int, int]:
    """The document of each passage that still exists, if it matches a condition."""
    ids = passage_ids.tolist()
    if clause is None:
        return dict(rows_for(connection, _OWNERS, ids))
    rows = connection.execute(_OWNERS.join(documents).where(clause), {"passage_ids": ids})
    return {passage_id: document_id for passage_id, document_id in rows}  # noqa: C416 - Rows


def best_passages(
    scored: Iterable[tuple[float, int]], owners: dict[int, int], k: int, per_document: int
) -> list[ScoredPassage]:
    """The `k` best passages of those with `owners`, at most `per_document` of each document.

    `scored` are scores and passage ids, best first.
    """
    best: list[ScoredPassage] = []
    taken = Counter[int]()
    for score, passage_id in scored:
        document_id = owners.get(passage_id)
        if document_id is not None and taken[document_id] < per_document:
            taken[document_id] += 1
            best.append(ScoredPassage(document_id, passage_id, score))
            if len(best) == k:
                break
    return best


def _clause(connection: Connection, restriction: Restriction) -> ColumnElement[bool] | None:
    number = documents.c.document_id
    clauses = []
    if restriction.condition is not None:
        clauses.append(sql_condition(connection, restriction.condition))
    clauses += [
        number.in_(_documents_with(connection, [phrase])) for phrase in restriction.required
    ]
    if restriction.excluded:
        clauses.append(number.not_in(_documents_with(connection, restriction.excluded)))
    return and_(*clauses) if clauses else None


def _documents_with(connection: Connection, phrases: Sequence[str]) -> ScalarSelect[int]:
    """The documents with a passage that contains a phrase; none if no phrase has words."""
    from semsearch.storage.words import Analyser

    match = Analyser(read_settings(connection).language).match_expression("", phrases) or '""'
    query = (
        select(passages.c.document_id)
        .join(passages_fts, passages.c.passage_id == passages_fts.c.rowid)
        .where(passages_fts.c.passages_fts.op("MATCH")(match))
    )
    return query.scalar_subquery()


def _sampled_share(connection: Connection, clause: ColumnElement[bool]) -> float:
    """The share of sampled documents that match a condition."""
    last = connection.scalar(select(func.max(documents.c.document_id))) or 0
    spread = numpy.unique(numpy.linspace(1, last, SAMPLE_DOCUMENTS).astype(numpy.int64))
    matching = func.sum(case((clause, 1), else_=0))
    sample = documents.c.document_id.in_(values(spread.tolist()))
    count, matches = connection.execute(select(func.count(), matching).where(sample)).one()
    return float(matches / count) if count else 0
