"""A typical program with semsearch, checked by `mypy --strict` and run by a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch import (
    Document,
    Encoder,
    Hit,
    Hits,
    Index,
    SearchMode,
    Summary,
    load_encoder,
    similar_pairs,
)


def build(path: Path, texts: Sequence[str]) -> list[Summary]:
    """Index texts, and return the summary of each batch."""
    summaries: list[Summary] = []
    encoder: Encoder = load_encoder("hashing:64")
    with Index.create(path, encoder) as index:
        documents = (Document(None, text, metadata={"length": len(text)}) for text in texts)
        summary: Summary = index.add(documents, on_batch=summaries.append)
        assert summary.added == len(index)
    return summaries


def ask(path: Path, query: str) -> list[dict[str, Any]]:
    """Search in several ways."""
    with Index.open(path, device="cpu") as index:
        hits: Hits = index.search(query, k=3, offset=0, min_score=0.1, where="length > 2")
        vector: NDArray[numpy.float32] = index.encoder(index.space()).encode_queries([query])[0]
        by_vector: list[Hits] = index.search_many([vector, query], mode=SearchMode.SEMANTIC)
        first: Hit | None = next(iter(by_vector[0]), None)
        if first is not None:
            document: Document | None = index.get(first.document_id)
            assert document is not None
            hits += index.more_like(first.document_id)
        hits += index.search(query, mode="bm25")
        names: list[str | None] = [document.id for document in index if query in document.text]
        assert all(name in index for name in names)
    return [hit.to_dict() for hit in hits]


def nearest(texts: Sequence[str]) -> tuple[int, int]:
    """The positions of the two most similar texts."""
    vectors = load_encoder("hashing").encode(texts, normalize_embeddings=True, batch_size=32)
    [pair] = similar_pairs(vectors, k=1)
    return pair.left, pair.right
