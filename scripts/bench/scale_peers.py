"""Other vector stores, as scripts/bench/scale builds and searches them.

Each keeps ids, texts, four fields and vectors on disk (usearch: ids and vectors), with the defaults
of its documentation. The search effort is raised until queries that are not measured have a
recall@10 of 0.98.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from semsearch import Document
from semsearch.protocols import Matrix

HITS = 10
ROWS_AT_ONCE = 5_000
#: From this many vectors on, LanceDB's documentation recommends an index.
LANCEDB_INDEXES = 100_000

#: Returns the ids of a query vector's hits.
Search = Callable[[Matrix], list[str]]


class Peer(NamedTuple):
    """A store.

    Args:
        build: stores documents and their vectors in a folder.
        open: opens the store; returns a function from an effort to a search.
        efforts: search efforts to try, the least first.
    """

    build: Callable[[Path, Iterator[Document], Matrix], None]
    open: Callable[[Path], Callable[[int], Search]]
    efforts: Sequence[int]


def usearch_build(folder: Path, documents: Iterator[Document], vectors: Matrix) -> None:
    from usearch.index import Index

    del documents  # it keeps no texts
    index = Index(ndim=vectors.shape[1], metric="ip")
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        part = numpy.array(vectors[start : start + ROWS_AT_ONCE])
        index.add(numpy.arange(start, start + len(part)), part)
    folder.mkdir()
    index.save(str(folder / "index.usearch"))


def usearch_open(folder: Path) -> Callable[[int], Search]:
    from usearch.index import Index

    index = Index.restore(str(folder / "index.usearch"), view=True)

    def going(effort: int) -> Search:
        index.expansion_search = effort
        return lambda query: [str(key) for key in index.search(query, HITS).keys]

    return going


def lancedb_build(folder: Path, documents: Iterator[Document], vectors: Matrix) -> None:
    import lancedb
    import pyarrow

    width = vectors.shape[1]

    def rows() -> Iterator[pyarrow.RecordBatch]:
        for some, part in _parts(documents, vectors, ROWS_AT_ONCE):
            records = [{"id": one.id, "text": one.text, **one.metadata} for one in some]
            vector = pyarrow.FixedSizeListArray.from_arrays(part.ravel(), width)
            batch = pyarrow.RecordBatch.from_pylist(records)
            yield batch.append_column("vector", vector)

    first = next(batches := rows())
    table = lancedb.connect(str(folder)).create_table("texts", schema=first.schema)
    table.add(pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], batches)))
    if len(vectors) >= LANCEDB_INDEXES:
        table.create_index(metric="cosine", num_partitions=math.isqrt(len(vectors)))
    table.create_fts_index("text")


def _parts(
    documents: Iterator[Document], vectors: Matrix, size: int
) -> Iterator[tuple[list[Document], Matrix]]:
    """Documents with their vectors, so many at once."""
    for start in range(0, len(vectors), size):
        yield list(islice(documents, size)), numpy.array(vectors[start : start + size])


def lancedb_open(folder: Path) -> Callable[[int], Search]:
    import lancedb

    table = lancedb.connect(str(folder)).open_table("texts")

    def going(effort: int) -> Search:
        def search(query: Matrix) -> list[str]:
            asked = table.search(query).distance_type("cosine").nprobes(effort).limit(HITS)
            shown = asked.refine_factor(REFINED).select(["id", "text", "_distance"])
            return [row["id"] for row in shown.to_list()]

        return search

    return going


def chroma_build(folder: Path, documents: Iterator[Document], vectors: Matrix) -> None:
    client = _chroma_client(folder)
    collection = client.create_collection("texts", configuration={"hnsw": {"space": "cosine"}})
    for some, part in _parts(documents, vectors, client.get_max_batch_size()):
        collection.add(
            ids=[str(document.id) for document in some],
            documents=[document.text for document in some],
            metadatas=[dict(document.metadata) for document in some],
            embeddings=part,
        )


def chroma_open(folder: Path) -> Callable[[int], Search]:
    collection = _chroma_client(folder).get_collection("texts", embedding_function=None)

    def going(effort: int) -> Search:
        collection.modify(configuration={"hnsw": {"ef_search": effort}})

        def search(query: Matrix) -> list[str]:
            found = collection.query(query_embeddings=[query], n_results=HITS)
            return list(found["ids"][0])

        return search

    return going


def _chroma_client(folder: Path) -> Any:
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(folder), settings)


#: The candidates that LanceDB reranks by their vectors, per requested hit.
REFINED = 50

PEERS: Mapping[str, Peer] = {
    "usearch": Peer(usearch_build, usearch_open, (64, 96, 128, 192, 256, 384, 512, 768, 1024)),
    "lancedb": Peer(lancedb_build, lancedb_open, (20, 30, 45, 68, 100, 150, 225, 340, 500)),
    "chroma": Peer(chroma_build, chroma_open, (100, 150, 200, 300, 400, 600, 800, 1000)),
}
