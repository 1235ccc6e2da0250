"""What an index is about: its groups, queries to try, and its newest documents."""

from __future__ import annotations

from typing import Any

import numpy

from semsearch.corpus.texts import one_line, split_sentences
from semsearch.explore.map import Map, open_map
from semsearch.filters import Comparison, Operator
from semsearch.index import Index
from semsearch.records import Document, Kind, metadata_field
from semsearch.storage.interface import Reader, Selection, parse_filter

#: The most groups, queries and documents shown, and characters of a text.
GROUPS, QUERIES, NEWEST, MATCHING, CHARACTERS = 12, 3, 5, 24, 200


def overview_of(index: Index, where: str | None = None) -> dict[str, Any]:
    """The groups of the newest map, each with a typical passage; queries; newest documents.

    With a filter, only the first documents that match.

    Raises:
        FilterError: the filter is invalid.
    """
    if where is not None:
        with index.read() as state:
            ids = state.ids(Selection(condition=parse_filter(state, where)), MATCHING)
            matching = [_shown(one) for one in state.documents(ids).values()]
        return {"groups": [], "queries": [], "newest": matching}
    found = open_map(index)
    with index.read() as state:
        groups = [] if found is None else _groups(state, found)
        ids = [group["id"] for group in groups[:QUERIES]] or state.ids(limit=QUERIES)
        documents = state.documents(ids)
        queries = [  # the titles, or first sentences
            one.title or one_line(split_sentences(one.text)[0])[:CHARACTERS]
            for one in map(documents.get, ids)
            if one is not None
        ]
        newest = [_shown(document) for document in _newest(state)]
    return {"groups": groups, "queries": list(dict.fromkeys(queries)), "newest": newest}


def _groups(state: Reader, found: Map) -> list[dict[str, Any]]:
    sizes = numpy.bincount(found.groups, minlength=len(found.names)).tolist()
    typical = found.passage_ids[found.typical].tolist()
    passages = state.fetch(typical)
    return [
        {
            "name": name,
            "passages": size,
            "id": passage.passage.document_id,
            "title": passage.title,
            "text": _beginning(passage.passage.text),
        }
        for name, size, row in list(zip(found.names, sizes, typical, strict=True))[:GROUPS]
        if (passage := passages.get(row)) is not None
    ]


def _shown(document: Document) -> dict[str, Any]:
    return {"id": document.id, "title": document.title, "text": _beginning(document.text)}


def _beginning(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"


def _newest(state: Reader) -> list[Document]:
    """The documents of the latest day, by the first field that holds only dates."""
    for field in state.field_values():
        if set(field.kinds) - {Kind.NULL.value} == {Kind.DATE.value}:
            day = Comparison(
                metadata_field(field.name), Operator.GREATER_OR_EQUAL, str(field.greatest)[:10]
            )
            return list(state.documents(state.ids(Selection(condition=day), NEWEST)).values())
    return []
