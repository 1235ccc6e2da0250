"""An index as a Haystack document store, and a retriever for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from semsearch.arguments import check_texts, shown
from semsearch.errors import ArgumentError, FilterError, MissingExtraError
from semsearch.filters import (
    And,
    Comparison,
    Condition,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Value,
)
from semsearch.index import Index
from semsearch.integrations.passages import conjunction, hit_metadata
from semsearch.records import Document, metadata_field
from semsearch.storage.filtering import parse_filter
from semsearch.storage.interface import Selection

try:
    from haystack import Document as HaystackDocument
    from haystack import component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError as HaystackFilterError
except ImportError as error:
    raise MissingExtraError("haystack-ai", "haystack", __name__) from error

_ORDERS = {">": Operator.GREATER, ">=": Operator.GREATER_OR_EQUAL}
_ORDERS |= {"<": Operator.LESS, "<=": Operator.LESS_OR_EQUAL}


class SemsearchDocumentStore:
    """An index as a document store. It encodes texts itself, without embedders.

    A document's title, which Haystack's documents lack, is kept when the document is overwritten.

    Args:
        path: the directory of the index, created if it does not exist.
        encoder: the spec of its encoder; None for that of the index, or ``minilm`` for a new one.
        space: the name of the embedding space to search; None for the first.

    Raises:
        IndexFormatError: the directory is not an index.
        SpaceError: the space does not exist.
    """

    def __init__(self, path: str, encoder: str | None = None, space: str | None = None) -> None:
        self.path, self.encoder, self.space = str(path), encoder, space
        self.index = Index.create(self.path, encoder)

    def close(self) -> None:
        """Close the index."""
        self.index.close()

    def to_dict(self) -> dict[str, Any]:
        """Serialise the store for a pipeline."""
        saved: dict[str, Any] = default_to_dict(
            self, path=self.path, encoder=self.encoder, space=self.space
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SemsearchDocumentStore:
        """Deserialise a store from `to_dict`."""
        store: SemsearchDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        """The number of documents."""
        return self.index.count()

    async def count_documents_async(self) -> int:
        """Like `count_documents`, in a thread."""
        return await asyncio.to_thread(self.count_documents)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[HaystackDocument]:
        """The documents that match filters, in insertion order; all documents without filters.

        Raises:
            haystack.errors.FilterError: the filters are invalid.
        """
        with _errors_of_haystack(), self.index.read() as state:
            where = where_of(filters)
            if not state.ids(limit=1):
                return []  # an empty index accepts any filter
            condition = None if where is None else parse_filter(state, where)
            documents = state.documents(state.ids(Selection(condition=condition)))
        return [
            HaystackDocument(id=str(one.id), content=one.text, meta=dict(one.metadata))
            for one in documents.values()
        ]

    async def filter_documents_async(
        self, filters: dict[str, Any] | None = None
    ) -> list[HaystackDocument]:
        """Like `filter_documents`, in a thread."""
        return await asyncio.to_thread(self.filter_documents, filters)

    def write_documents(
        self,
        documents: list[HaystackDocument],
        policy: DuplicatePolicy = DuplicatePolicy.NONE,
    ) -> int:
        """Add documents with texts; returns the number written.

        It waits while another process or thread writes the index.

        Args:
            documents: the documents; their embeddings are ignored.
            policy: how to handle existing ids; ``NONE`` means ``FAIL``.

        Raises:
            ArgumentError: `documents` is not a list of Documents.
            BadRowError: a document has no text, or its metadata cannot be stored as JSON.
            haystack.document_stores.errors.DuplicateDocumentError: an id exists already.
        """
        if not isinstance(documents, list):
            raise ArgumentError(f"documents must be a list, not {shown(documents)}")
        for document in documents:
            if not isinstance(document, HaystackDocument):
                raise ArgumentError(f"documents must hold Documents, not {shown(document)}")
        new: dict[str, HaystackDocument] = {}
        with self.index.writer(wait=math.inf) as writer:  # nobody else adds these ids meanwhile
            with self.index.read() as state:
                known = state.stored_documents([document.id for document in documents])
            for document in documents:
                is_new = document.id not in known and document.id not in new
                if policy is DuplicatePolicy.OVERWRITE or is_new:
                    new[document.id] = document
                elif policy is not DuplicatePolicy.SKIP:
                    raise DuplicateDocumentError(f"ID '{document.id}' already exists.")
            titles = {name: stored.title for name, stored in known.items()}
            writer.upsert(
                [_converted(document, titles.get(name)) for name, document in new.items()]
            )
        return len(documents) if policy is DuplicatePolicy.OVERWRITE else len(new)

    async def write_documents_async(
        self,
        documents: list[HaystackDocument],
        policy: DuplicatePolicy = DuplicatePolicy.NONE,
    ) -> int:
        """Like `write_documents`, in a thread."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; unknown ids are ignored.

        It waits while another process or thread writes the index.

        Raises:
            ArgumentError: `document_ids` is not a list of strings.
        """
        names = check_texts("document_ids", document_ids)
        with self.index.writer(wait=math.inf) as writer:
            with self.index.read() as state:
                present = list(state.stored_documents(names))
            if present:
                writer.delete(present)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Like `delete_documents`, in a thread."""
        await asyncio.to_thread(self.delete_documents, document_ids)


@component
class SemsearchRetriever:
    """Retrieves the best passage of each document.

    Score, title and position of a passage are added to the metadata of the document.

    Args:
        document_store: the store to search.
        filters: replaced by the filters of a run, if given.
        top_k: the number of passages.
        options: of `SearchOptions`, such as ``{"mode": "hybrid"}``.
    """

    def __init__(
        self,
        document_store: SemsearchDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.document_store = document_store
        self.filters, self.top_k, self.options = filters, top_k, options or {}

    def to_dict(self) -> dict[str, Any]:
        """Serialise the component for a pipeline."""
        saved: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            options=self.options,
        )
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SemsearchRetriever:
        """Deserialise a component from `to_dict`."""
        store = SemsearchDocumentStore.from_dict(data["init_parameters"]["document_store"])
        parameters = data["init_parameters"] | {"document_store": store}
        return cls(**parameters)

    @component.output_types(documents=list[HaystackDocument])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """The best passages for a query.

        Raises:
            haystack.errors.FilterError: the filters are invalid.
            ArgumentError: the query is empty, or `top_k` is below 1.
        """
        options = dict(self.options)
        with _errors_of_haystack():
            where = where_of(self.filters if filters is None else filters)
            options["where"] = conjunction(options.get("where"), where)
            k = self.top_k if top_k is None else top_k
            with self.document_store.index.read() as state:
                if not state.ids(limit=1):
                    del options["where"]  # an empty index accepts any filter
            store = self.document_store
            hits = store.index.search(query, k, space=store.space, **options)
        return {
            "documents": [
                HaystackDocument(
                    id=hit.document_id, content=hit.text, meta=hit_metadata(hit), score=hit.score
                )
                for hit in hits
            ]
        }

    @component.output_types(documents=list[HaystackDocument])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """Like `run`, in a thread."""
        return await asyncio.to_thread(self.run, query, filters, top_k)


def where_of(filters: dict[str, Any] | None) -> str | None:
    """Haystack's filters as a filter expression; None without filters.

    >>> where_of({"field": "meta.year", "operator": ">=", "value": 1990})
    'year >= 1990'

    Raises:
        FilterError: they are malformed or not supported.
    """
    return str(_condition(filters)) if filters else None


def _condition(filters: Any) -> Condition:
    if not isinstance(filters, dict):
        raise FilterError(f"a filter must be a dictionary, not {shown(filters)}")
    if "field" in filters:
        return _comparison(*(_item(filters, key) for key in ("field", "operator", "value")))
    operator, items = _item(filters, "operator"), _item(filters, "conditions")
    if operator not in ["AND", "OR", "NOT"] or not isinstance(items, list) or not items:
        raise FilterError(f"operator {shown(operator)} must be AND, OR or NOT, with conditions")
    conditions = tuple(map(_condition, items))
    joined = conditions[0]
    if len(conditions) > 1:
        joined = Or(conditions) if operator == "OR" else And(conditions)
    return Not(joined) if operator == "NOT" else joined


def _item(filters: dict[str, Any], key: str) -> Any:
    if key not in filters:
        raise FilterError(f"filter {shown(filters)} lacks '{key}'")
    return filters[key]


def _comparison(name: Any, operator: Any, value: Any) -> Condition:
    for what, text in (("field", name), ("operator", operator)):
        if not isinstance(text, str):
            raise FilterError(f"{what} must be a string, not {shown(text)}")
    if name == "content":
        raise FilterError("filters compare id and meta, not content")
    field = metadata_field(name.removeprefix("meta.")) if name != "id" else "id"
    if operator in ("!=", "not in"):
        return Not(_comparison(name, "==" if operator == "!=" else "in", value))
    if operator == "in":
        if not isinstance(value, list):
            raise FilterError(f"operator 'in' takes a list, not {shown(value)}")
        return In(field, tuple(_literal(one) for one in value))
    if operator == "==":
        return (
            IsNull(field) if value is None else Comparison(field, Operator.EQUAL, _literal(value))
        )
    if operator not in _ORDERS:
        raise FilterError(f"unknown operator {shown(operator)}")
    if value is None:
        return In(field, ())  # matches nothing
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise FilterError(
                f"'{operator}' compares numbers and dates, not {shown(value)}"
            ) from None
    return Comparison(field, _ORDERS[operator], _literal(value))


def _literal(value: Any) -> Value:
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, (str, int, float)):
        raise FilterError(
            f"a filter compares strings, numbers, booleans and dates, not {shown(value)}"
        )
    return value


def _converted(document: HaystackDocument, title: str | None) -> Document:
    source = f"document {document.id}"
    return Document(document.id, document.content, title, document.meta, source)


@contextmanager
def _errors_of_haystack() -> Iterator[None]:
    """Convert FilterErrors to Haystack's."""
    try:
        yield
    except FilterError as error:
        raise HaystackFilterError(str(error)) from error
