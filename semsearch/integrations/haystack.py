"""An index as a Haystack document store, and a retriever for it."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

from semsearch.errors import MissingExtraError, shown
from semsearch.filters import And, Comparison, Condition, In, Not, Operator, Or
from semsearch.filters.times import instant
from semsearch.index import Index
from semsearch.integrations.passages import conjunction, delete, equals, hit_metadata
from semsearch.records import Document, metadata_field
from semsearch.storage.interface import Selection, parse_filter

try:
    from haystack import Document as HaystackDocument
    from haystack import component, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
except ImportError as error:
    raise MissingExtraError("haystack-ai", "haystack", __name__) from error

_ORDERS = {operator.value: operator for operator in Operator if operator.is_order}


class SemsearchDocumentStore:
    """An index as a document store. It encodes texts itself, without embedders.

    Haystack's documents have no titles. Writing waits for other writers of the index.

    Args:
        path: the directory of the index, created if it does not exist.
        encoder: the spec of its encoder; None for that of the index, or ``minilm`` for a new one.
    """

    def __init__(self, path: str, encoder: str | None = None) -> None:
        self.path, self.encoder = str(path), encoder
        self.index = Index.create(self.path, encoder)

    def to_dict(self) -> dict[str, Any]:
        """Serialise the store for a pipeline; Haystack's default deserialises it."""
        return dict(default_to_dict(self, path=self.path, encoder=self.encoder))

    def count_documents(self) -> int:
        """The number of documents."""
        return self.index.count()

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[HaystackDocument]:
        """The documents that match filters, in insertion order; all documents without filters."""
        where = conjunction(self.index, where_of(filters), None)
        with self.index.read() as state:
            condition = None if where is None else parse_filter(state, where)
            documents = state.documents(state.ids(Selection(condition=condition)))
        return [
            HaystackDocument(id=str(one.id), content=one.text, meta=dict(one.metadata))
            for one in documents.values()
        ]

    def write_documents(
        self, documents: list[HaystackDocument], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Add documents with texts, without their embeddings; returns the number written.

        Raises:
            BadRowError: a document has no text, or its metadata cannot be stored as JSON.
            ValueError: `documents` is not a list of Documents.
            DuplicateDocumentError: an id exists already, and `policy` is ``NONE`` or ``FAIL``.
        """
        if not all(isinstance(one, HaystackDocument) for one in documents):
            raise ValueError("write_documents takes a list of Documents")
        new: dict[str, HaystackDocument] = {}
        with self.index.read() as state:
            known = state.stored_documents([document.id for document in documents])
        for document in documents:
            is_new = document.id not in known and document.id not in new
            if policy is DuplicatePolicy.OVERWRITE or is_new:
                new[document.id] = document
            elif policy is not DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"ID '{document.id}' already exists.")
        rows = (
            Document(name, one.content, None, one.meta, f"document {name}")
            for name, one in new.items()
        )
        self.index.add(rows, wait=math.inf)
        return len(documents) if policy is DuplicatePolicy.OVERWRITE else len(new)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; unknown ids are ignored."""
        delete(self.index, document_ids)


@component
class SemsearchRetriever:
    """Retrieves the best passage of each document.

    Score, title and position of a passage are added to the metadata of the document.

    Args:
        document_store: the store to search, or the path of an index, created if it is missing.
        filters: replaced by the filters of a run, if given.
        top_k: the number of passages.
        options: of `SearchOptions`, such as ``{"mode": "hybrid"}``.
    """

    def __init__(
        self,
        document_store: SemsearchDocumentStore | str | Path,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        options: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(document_store, SemsearchDocumentStore):
            document_store = SemsearchDocumentStore(str(document_store))
        self.document_store: SemsearchDocumentStore = document_store
        self.filters, self.top_k, self.options = filters, top_k, options or {}

    @component.output_types(documents=list[HaystackDocument])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """The best passages for a query."""
        index = self.document_store.index
        where = where_of(self.filters if filters is None else filters)
        where = conjunction(index, self.options.get("where"), where)
        k = self.top_k if top_k is None else top_k
        hits = index.search(query, k, **self.options | {"where": where})
        found = [
            HaystackDocument(
                id=hit.document_id, content=hit.text, meta=hit_metadata(hit), score=hit.score
            )
            for hit in hits
        ]
        return {"documents": found}


def where_of(filters: dict[str, Any] | None) -> str | None:
    """Haystack's filters as a filter expression; None without filters.

    >>> where_of({"field": "meta.year", "operator": ">=", "value": 1990})
    'year >= 1990'

    Raises:
        haystack.errors.FilterError: they are malformed or not supported.
    """
    try:
        return str(_condition(filters)) if filters else None
    except (AttributeError, KeyError, TypeError) as error:
        raise FilterError(f"invalid filters {shown(filters)}: {error!r}") from error


def _condition(filters: dict[str, Any]) -> Condition:
    operator = filters["operator"]
    if "field" in filters:
        name = str(filters["field"])
        field = "id" if name == "id" else metadata_field(name.removeprefix("meta."))
        return _comparison(field, operator, filters["value"])
    conditions = tuple(map(_condition, filters["conditions"]))
    if operator not in ("AND", "OR", "NOT") or not conditions:
        raise FilterError(f"operator {shown(operator)} must be AND, OR or NOT, with conditions")
    joined = Or(conditions) if operator == "OR" else And(conditions)
    return Not(joined) if operator == "NOT" else joined


def _comparison(field: str, operator: str, value: Any) -> Condition:
    if isinstance(value, date):
        value = value.isoformat()
    if operator in ("!=", "not in"):
        return Not(_comparison(field, "==" if operator == "!=" else "in", value))
    if operator == "in" and isinstance(value, list):
        return In(field, tuple(value))
    if operator == "==" and not isinstance(value, list | dict):
        return equals(field, value)
    if operator in _ORDERS and value is None:
        return In(field, ())  # matches nothing
    is_time = isinstance(value, str) and instant(value) is not None
    if operator in _ORDERS and (isinstance(value, int | float) or is_time):
        return Comparison(field, _ORDERS[operator], value)
    raise FilterError(f"operator {shown(operator)} does not compare with {shown(value)}")
