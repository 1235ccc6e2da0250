"""Restrictions of a search to some documents: as SQL conditions, or as lists of passages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    and_,
    case,
    func,
    literal_column,
    select,
    table,
)

from semsearch.records import BUILT_IN_FIELDS, metadata_field
from semsearch.storage.interface import FieldValues, Restriction
from semsearch.storage.sqlite import fields as kinds
from semsearch.storage.sqlite.schema import (
    documents,
    get_frequent_words,
    get_language,
    get_revision,
    passages,
    values,
)
from semsearch.vector_indexes import Ids

if TYPE_CHECKING:
    from semsearch.analysis import Analyser
    from semsearch.filters import Condition

#: Documents sampled to estimate the share that matches a restriction.
SAMPLE_DOCUMENTS = 500
#: Restrictions whose shares and lists are cached.
RESTRICTIONS_KEPT = 16

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_WORDS = table("passages_fts")


class RestrictionMemory(NamedTuple):
    """A cache about states, by revision: their last restrictions, and the values of fields."""

    shares: dict[tuple[tuple[str, int], str], float]  #: estimated shares of documents
    lists: dict[tuple[tuple[str, int], str], Ids]  #: sorted ids of the allowed passages
    values: dict[tuple[str, int], list[FieldValues]]  #: of the newest state


class Restrictions:
    """Restrictions of one state.

    Args:
        connection: in a transaction.
        memory: a cache, shared with later states.
    """

    def __init__(self, connection: Connection, memory: RestrictionMemory) -> None:
        self._connection = connection
        self._memory = memory

    @cached_property
    def revision(self) -> tuple[str, int]:
        """The state; see `get_revision`."""
        return get_revision(self._connection)

    @cached_property
    def analyser(self) -> Analyser:
        """Reads texts as BM25 does."""
        from semsearch.analysis import Analyser  # of BM25 alone

        frequent = get_frequent_words(self._connection)
        return Analyser(get_language(self._connection), frequent.words)

    def all_that_meet(self, condition: Condition) -> ColumnElement[bool]:
        """A condition in SQL."""
        from semsearch.storage.sqlite.conditions import to_sql  # of filters alone

        return to_sql(condition, scalars=self._scalars)

    def clause(self, restriction: Restriction) -> ColumnElement[bool] | None:
        """The restriction in SQL; None if it allows all documents."""
        number = documents.c.document_id
        clauses = []
        if restriction.condition is not None:
            clauses.append(self.all_that_meet(restriction.condition))
        clauses += [number.in_(self._documents_with([phrase])) for phrase in restriction.required]
        if restriction.excluded:
            clauses.append(number.not_in(self._documents_with(restriction.excluded)))
        return and_(*clauses) if clauses else None

    def share(self, restriction: Restriction) -> float:
        """The estimated share of documents that match a restriction."""
        key = (self.revision, repr(restriction))  # 1 and true are equal
        share = self._memory.shares.get(key)
        if share is None:
            clause = self.clause(restriction)
            share = 1 if clause is None else _kept(self._memory.shares, key, self._sampled(clause))
        return share

    def is_indexed(self, restriction: Restriction) -> bool:
        """Whether indexes alone find the documents."""
        condition = restriction.condition
        if condition is None:
            return True
        from semsearch.storage.sqlite.conditions import is_found_by_index  # of filters alone

        return is_found_by_index(condition, self._found_by_index)

    def passages(self, restriction: Restriction) -> Ids:
        """The sorted ids of all passages whose documents are allowed; the last lists are cached."""
        key = (self.revision, repr(restriction))  # 1 and true are equal
        listed = self._memory.lists.get(key)
        if listed is None:
            query = select(passages.c.passage_id)
            clause = self.clause(restriction)
            if clause is not None:
                query = query.join(documents).where(clause)
            found = numpy.array(self._connection.scalars(query).all(), numpy.int64)
            found.sort()
            return _kept(self._memory.lists, key, found)
        return listed

    @cached_property
    def _scalars(self) -> set[str]:
        """The fields that hold no list in any document, named as in conditions."""
        return kinds.scalar_fields(self._connection)

    @cached_property
    def _found_by_index(self) -> set[str]:
        """The fields whose values SQLite finds by an index, named as in conditions."""
        indexed = map(metadata_field, kinds.indexed_fields(self._connection))
        return {*BUILT_IN_FIELDS, *(self._scalars.intersection(indexed))}

    def _documents_with(self, phrases: Sequence[str]) -> ScalarSelect[int]:
        """The documents with a passage that contains a phrase; none if no phrase has words."""
        match = self.analyser.match_expression("", phrases) or '""'
        query = (
            select(passages.c.document_id)
            .join(_WORDS, passages.c.passage_id == literal_column("passages_fts.rowid", Integer))
            .where(literal_column("passages_fts").op("MATCH")(match))
        )
        return query.scalar_subquery()

    def _sampled(self, clause: ColumnElement[bool]) -> float:
        """The share of sampled documents that match a condition."""
        highest = select(func.coalesce(func.max(documents.c.document_id), 0))
        last = self._connection.execute(highest).scalar_one()
        spread = numpy.unique(numpy.linspace(1, last, SAMPLE_DOCUMENTS).astype(numpy.int64))
        met = func.sum(case((clause, 1), else_=0))
        sample = documents.c.document_id.in_(values(spread.tolist()))
        count, sum_met = self._connection.execute(select(func.count(), met).where(sample)).one()
        return float(sum_met / count) if count else 0


def _kept(known: dict[_Key, _Value], key: _Key, value: _Value) -> _Value:
    """Cache a value instead of the oldest ones, and return it."""
    for old in list(known)[: 1 - RESTRICTIONS_KEPT]:
        known.pop(old, None)
    known[key] = value
    return value
