"""Building the collections for BM25 from the passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from semsearch.stores.milvus.collections import WORDS, make, terms_of, vectors_of, words_collections
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.state import MilvusState
from semsearch.stores.milvus.words import Totals, change_terms, count_words, held_terms
from semsearch.stores.protocol import EVERYTHING


def build_words(connection: Connection, state: MilvusState) -> Totals:
    """Rebuild the words of all passages in the index's language."""
    make(connection, words_collections(connection))
    totals, terms = _counted(state)
    change_terms(connection, terms, 0)
    for owners, passages in _pages(state):
        documents = {row["document"]: row for row in owners}
        counts = count_words([row["text"] for row in passages], state.analyser)
        rows: list[Row] = [
            {
                "row": row["chunk"],
                "chunk": row["chunk"],
                "document": row["document"],
                "version": documents[row["document"]]["version"],
                "fields": documents[row["document"]]["fields"],
                "vector": totals.weights(each),
            }
            for row, each in zip(passages, counts, strict=True)
        ]
        connection.upsert(vectors_of(connection, WORDS), rows)
    return totals


def are_words_counted(connection: Connection, state: MilvusState) -> bool:
    """Whether the stored counts of passages by word are right."""
    totals, terms = _counted(state)
    return (
        totals == state.totals
        and held_terms(connection, list(terms), 0) == terms
        and connection.count(terms_of(connection), "passages > 0", 0) == len(terms)
    )


def _counted(state: MilvusState) -> tuple[Totals, Counter[int]]:
    """All words, and in how many passages each of them is."""
    totals, terms = Totals(), Counter[int]()
    for _, passages in _pages(state):
        counts = count_words([row["text"] for row in passages], state.analyser)
        totals = totals.changed(counts, [])
        terms.update(term for each in counts for term in each)
    return totals, terms


def _pages(state: MilvusState) -> Iterator[tuple[list[Row], list[Row]]]:
    """Documents and their passages, some at a time."""
    for owners in state.selected(EVERYTHING, ["fields"]):
        yield owners, state.reader.live_passages(owners, ["text"])
