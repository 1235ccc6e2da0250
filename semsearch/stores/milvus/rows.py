"""The rows that a commit writes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from semsearch.errors import IndexStoreError
from semsearch.stores.milvus.catalogue import Content
from semsearch.stores.milvus.collections import (
    MAX_BYTES,
    WORDS,
    key_of,
    rounded,
    without_vector,
)
from semsearch.stores.milvus.connection import Row
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.terms import document_terms
from semsearch.stores.milvus.words import Counts, count_words
from semsearch.stores.protocol import NewDocument, Selection, Space, TextVectors, rest_of


class NewRows(NamedTuple):
    """The rows of a commit, and those that it replaces."""

    documents: list[Row]
    passages: list[Row]
    vectors: list[tuple[Space, list[Row]]]
    replaced: list[Row]  #: the documents' former rows
    last_document: int  #: the highest numbers that they have
    last_row: int
    counts: list[Counts]  #: of the passages' words; empty without BM25


def new_rows(
    state: MilvusState, content: Content, new: Sequence[NewDocument], text_vectors: TextVectors
) -> NewRows:
    """The rows of documents that are added or renewed.

    Args:
        state: the present one.
        content: with the numbers that are taken.
        new: the documents.
        text_vectors: by space and text.

    Raises:
        IndexStoreError: one of them is larger than Milvus takes.
    """
    old = {
        row["id"]: row
        for rows in state.selected(Selection([one.id for one in new]), ["passages", "metadata"])
        for row in rows
    }
    numbers, sequence = itertools.count(content.document + 1), itertools.count(content.row + 1)
    version = next(sequence)
    owned = {one.id: old[one.id]["document"] if one.id in old else next(numbers) for one in new}
    terms = {owned[one.id]: _terms(one) for one in new}
    spans = _kept_spans(state, [old[one.id] for one in new if one.passages is None])
    passages: list[Row] = []
    documents: list[Row] = []
    for one in new:
        number = owned[one.id]
        passages += [
            {"chunk": next(sequence), "document": number, "version": version, **each._asdict()}
            for each in one.passages or ()
        ]
        is_kept = one.passages is None
        documents.append(
            {
                "key": key_of(one.id),
                "document": number,
                "version": version,
                "text_version": old[one.id]["text_version"] if is_kept else version,
                "passages": len(spans[number] if one.passages is None else one.passages),
                "id": one.id,
                "title": json.dumps(one.title, ensure_ascii=False),
                "metadata": one.metadata,
                "rest": rest_of(
                    one.text,
                    spans[number]
                    if one.passages is None
                    else [(each.start, each.end) for each in one.passages],
                ),
                "text_hash": one.text_hash,
                "fields": terms[number],
            }
        )
    kept = [old[one.id] for one in new if one.passages is None]
    vectors = []
    counts: list[Counts] = []
    by_text: dict[tuple[int, str], Any] = dict(text_vectors)
    if state.has_words:
        counts = count_words([row["text"] for row in passages], state.analyser)
        totals = state.totals.changed(counts, [])
        for row, each in zip(passages, counts, strict=True):
            by_text[WORDS.id, row["text_hash"]] = totals.weights(each)
    for space in state.vector_spaces():
        rows = [
            {**one, "row": next(sequence), "version": version, "fields": terms[one["document"]]}
            for one in _vectors(space, passages, by_text, state, kept)
        ]
        vectors.append((space, rows))
    return NewRows(
        without_vector(documents),
        without_vector(passages),
        vectors,
        list(old.values()),
        next(numbers) - 1,
        next(sequence) - 1,
        counts,
    )


def _vectors(
    space: Space,
    passages: Sequence[Row],
    text_vectors: Mapping[tuple[int, str], Any],
    state: MilvusState,
    kept: Sequence[Row],
) -> Iterator[Row]:
    """Chunks, their documents and vectors: of new passages, and of those that are kept."""
    for row in passages:
        vector = text_vectors[space.id, row["text_hash"]]
        if space != WORDS:
            vector = rounded(space, vector)
        yield {"chunk": row["chunk"], "document": row["document"], "vector": vector}
    for row in state.reader.live_vectors(space, kept, ["vector"]) if kept else []:
        yield {name: row[name] for name in ("chunk", "document", "vector")}


def _kept_spans(state: MilvusState, owners: Sequence[Row]) -> Mapping[int, list[tuple[int, int]]]:
    spans: dict[int, list[tuple[int, int]]] = {row["document"]: [] for row in owners}
    for row in state.reader.live_passages(owners, ["start", "end"]) if owners else []:
        spans[row["document"]].append((row["start"], row["end"]))
    return spans


def _terms(new: NewDocument) -> Row:
    terms = document_terms(new.id, new.title, new.metadata)
    size = len(json.dumps(terms))
    if size > MAX_BYTES:
        raise IndexStoreError(
            f"the values by which filters find document '{new.id}' take {size:,} bytes; Milvus "
            f"takes up to {MAX_BYTES:,}; leave out long lists"
        )
    return terms
