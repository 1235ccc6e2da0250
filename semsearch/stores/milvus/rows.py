"""The rows that a commit writes.

A draft has numbers for all of them. Passages and vectors count once the rows of their documents are
written.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semsearch.stores.milvus.catalogue import Content
from semsearch.stores.milvus.collections import (
    MAX_BYTES,
    WORDS,
    key_of,
    passages_of,
    rounded,
    vectors_of,
    without_vector,
)
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.terms import document_terms
from semsearch.stores.milvus.words import WordCounts, count_words
from semsearch.stores.protocol import (
    NewDocument,
    NewPassage,
    Selection,
    Space,
    TextVectors,
)


@dataclass(frozen=True)
class Rows:
    """The passages and vectors of a draft.

    Args:
        version: of all rows of the draft.
        passages: the rows of new passages.
        kept: the former rows of documents that keep their passages.
        terms: the terms of documents by their numbers.
        first: by space, the number of its first row.
    """

    version: int
    passages: list[Row]
    kept: list[Row]
    terms: Mapping[int, Row]
    first: Mapping[int, int]


@dataclass(frozen=True)
class Draft:
    """What a commit writes and replaces.

    Args:
        documents: the rows of documents.
        rows: passages and vectors.
        replaced: the former rows of the documents.
        last_document: the highest numbers that it takes.
        last_row: the same of rows.
    """

    documents: list[Row]
    rows: Rows
    replaced: list[Row]
    last_document: int
    last_row: int


def misfits(documents: Sequence[NewDocument]) -> dict[str, str]:
    """Why Milvus cannot hold documents, by the ids of those that are too large."""
    return {
        new.id: f"{what} {len(text.encode()):,} bytes; Milvus takes up to {MAX_BYTES:,}"
        for new in documents
        for what, text in _fields(new)
        if len(text) * 4 > MAX_BYTES and len(text.encode()) > MAX_BYTES
    }


def _fields(new: NewDocument) -> Iterator[tuple[str, str]]:
    """The texts that are stored of a document, and the beginnings of messages about them."""
    yield "its id has", new.id
    yield "its title has", _title(new)
    yield "its metadata has", new.metadata
    terms = document_terms(new.id, new.title, new.metadata)
    yield "the values by which filters find it, as those of long lists, take", json.dumps(terms)
    if new.passages is not None:
        for passage in new.passages:
            yield "a passage has", passage.text
        yield "its text outside its passages has", rest_of(new.text, _spans(new.passages))


def rest_of(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The characters of a text outside these ordered ranges."""
    parts, place = [], 0
    for start, end in spans:
        parts.append(text[place:start])
        place = end
    return "".join([*parts, text[place:]])


def _title(new: NewDocument) -> str:
    return json.dumps(new.title, ensure_ascii=False)


def _spans(passages: Sequence[NewPassage]) -> list[tuple[int, int]]:
    return [(passage.start, passage.end) for passage in passages]


def drafted(state: MilvusState, content: Content, new: Sequence[NewDocument]) -> Draft:
    """The rows of documents that are added or renewed.

    Args:
        state: the present one.
        content: with the numbers that are taken.
        new: the documents.
    """
    old = {
        row["id"]: row
        for rows in state.selected(Selection([one.id for one in new]), ["metadata"])
        for row in rows
    }
    numbers, sequence = itertools.count(content.document + 1), itertools.count(content.row + 1)
    version = next(sequence)
    owned = {one.id: old[one.id]["document"] if one.id in old else next(numbers) for one in new}
    terms = {owned[one.id]: document_terms(one.id, one.title, one.metadata) for one in new}
    kept = [old[one.id] for one in new if one.passages is None]
    spans = _kept_spans(state, kept)
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
                "title": _title(one),
                "metadata": one.metadata,
                "rest": rest_of(
                    one.text, spans[number] if one.passages is None else _spans(one.passages)
                ),
                "text_hash": one.text_hash,
                "fields": terms[number],
            }
        )
    vectors = len(passages) + sum(map(len, spans.values()))
    after, spaces = next(sequence), state.vector_spaces()
    first = {space.id: after + place * vectors for place, space in enumerate(spaces)}
    return Draft(
        without_vector(documents),
        Rows(version, without_vector(passages), kept, terms, first),
        list(old.values()),
        next(numbers) - 1,
        after + len(spaces) * vectors - 1,
    )


def write_rows(
    connection: Connection, state: MilvusState, rows: Rows, text_vectors: TextVectors
) -> WordCounts:
    """Write passages, then vectors.

    Args:
        connection: to Milvus.
        state: the present one.
        rows: what to write.
        text_vectors: by space and text.

    Returns:
        The words of the passages; none without BM25.
    """
    passages, words = rows.passages, WordCounts()
    by_text: dict[tuple[int, str], Any] = dict(text_vectors)
    if state.has_words:
        counts = count_words([row["text"] for row in passages], state.analyser)
        words = WordCounts.of(counts)
        totals = state.totals.plus(words.totals)
        for row, each in zip(passages, counts, strict=True):
            by_text[WORDS.id, row["text_hash"]] = totals.weights(each)
    connection.upsert(passages_of(connection), passages)
    for space in state.vector_spaces():
        own = {"version": rows.version}
        vectors = (
            {**one, **own, "row": number, "fields": rows.terms[one["document"]]}
            for number, one in enumerate(
                _vectors(space, passages, by_text, state, rows.kept), start=rows.first[space.id]
            )
        )
        connection.upsert(vectors_of(connection, space), vectors)
    return words


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
