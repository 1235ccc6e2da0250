"""The collections of an index: documents, passages, the vectors of each space, and words.

A document is what its row says: a passage or a vector whose version is not the one that the
document's row names is not there, for whoever reads. So a document appears, changes and goes with
one row, whatever has been written for it before or is still to be deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy

from semsearch.errors import IndexStoreError
from semsearch.protocols import Matrix
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.protocol import Space

#: The longest text that a field takes, in bytes, and the largest JSON.
MAX_BYTES = 65_535
#: How many numbers are read at once.
STEP = 8192
#: How many keys a condition lists.
KEYS_AT_ONCE = 1000

#: The graph's links, and among how many candidates they are chosen.
LINKS, BUILD_CANDIDATES = 32, 200

#: Where passages are sparse vectors of their words, for BM25.
WORDS = Space(0, "BM25", "", "", 0, "float32", True, {})

#: What Milvus asks of every collection; documents and passages have none of their own.
_NO_VECTOR = [1.0, 0.0]


def documents_of(connection: Connection) -> str:
    """The collection of documents; it is the index."""
    return connection.name


def passages_of(connection: Connection) -> str:
    """The collection of passages."""
    return f"{connection.name}_passages"


def vectors_of(connection: Connection, space: Space) -> str:
    """The collection of a space's vectors."""
    return f"{connection.name}_{'words' if space == WORDS else f'space_{space.id}'}"


def terms_of(connection: Connection) -> str:
    """The collection of the words that passages have."""
    return f"{connection.name}_terms"


def metric_of(space: Space) -> str:
    """How vectors of a space are compared: float16 changes their length, as in a directory."""
    return "COSINE" if space.dtype == "float16" else "IP"


def rounded(space: Space, vectors: Matrix) -> Matrix:
    """Vectors as a space keeps them: float32, with the values of its type."""
    return vectors.astype(space.dtype).astype(numpy.float32)


def make_documents(connection: Connection, properties: dict[str, str]) -> None:
    """Make the collection of documents."""
    columns = {
        "document": "INT64",  # its number
        "version": "INT64",  # of its vectors' rows
        "text_version": "INT64",  # of its passages
        "passages": "INT64",  # how many it has
        "id": "VARCHAR",
        "title": "VARCHAR",  # JSON
        "metadata": "VARCHAR",  # JSON, as it was given
        "rest": "VARCHAR",  # of its text, outside its passages
        "text_hash": "VARCHAR",
        "fields": "JSON",  # the terms of title, id and metadata
    }
    _make(connection, documents_of(connection), ("key", "VARCHAR"), columns, 2, properties)


def make_passages(connection: Connection) -> None:
    """Make the collection of passages."""
    columns = {
        "document": "INT64",
        "version": "INT64",
        "start": "INT64",
        "end": "INT64",
        "text": "VARCHAR",
        "text_hash": "VARCHAR",
    }
    _make(connection, passages_of(connection), ("chunk", "INT64"), columns, 2)


def make_vectors(connection: Connection, space: Space) -> None:
    """Make the collection of a space's vectors."""
    columns = {"chunk": "INT64", "document": "INT64", "version": "INT64", "fields": "JSON"}
    name, metric = vectors_of(connection, space), metric_of(space)
    _make(connection, name, ("row", "INT64"), columns, space.dimension, metric=metric)


def make_words(connection: Connection) -> None:
    """Make the collections for BM25, empty."""
    make_vectors(connection, WORDS)
    _make(connection, terms_of(connection), ("term", "INT64"), {"passages": "INT64"}, 2)


def _make(
    connection: Connection,
    name: str,
    key: tuple[str, str],
    columns: dict[str, str],
    dimension: int,
    properties: dict[str, str] | None = None,
    metric: str = "IP",
) -> None:
    from pymilvus import DataType, MilvusClient

    if connection.has(name):
        connection.call("drop_collection", name)  # of an index whose creation was interrupted
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for column, kind in {key[0]: key[1], **columns}.items():
        options: dict[str, Any] = {"max_length": MAX_BYTES} if kind == "VARCHAR" else {}
        schema.add_field(column, DataType[kind], is_primary=column == key[0], **options)
    if dimension:
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    else:
        schema.add_field("vector", DataType.SPARSE_FLOAT_VECTOR)
    connection.call(
        "create_collection",
        name,
        schema=schema,
        consistency_level="Strong",
        properties=properties or {},
    )
    build_index(connection, name, "FLAT" if dimension else "SPARSE_INVERTED_INDEX", metric)


def build_index(connection: Connection, collection: str, kind: str, metric: str) -> None:
    """Have the vectors of a collection indexed and loaded; requests wait until they are."""
    from pymilvus import MilvusClient

    parameters = {"M": LINKS, "efConstruction": BUILD_CANDIDATES} if kind == "HNSW" else {}
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("vector", index_type=kind, metric_type=metric, params=parameters)
    connection.call("create_index", collection, indexes, sync=False)
    connection.call("load_collection", collection, _async=True)


def key_of(name: str) -> str:
    """The primary key of the document of an id."""
    return blake2b(name.encode(), digest_size=16).hexdigest()


def without_vector(rows: Sequence[Row]) -> list[Row]:
    """Rows of documents or passages as Milvus wants them.

    Raises:
        IndexStoreError: a text is longer than a field may be.
    """
    for row in rows:
        for field, value in row.items():
            if isinstance(value, str) and len(value) * 4 > MAX_BYTES:
                _check_size(row, field, len(value.encode()))
        row["vector"] = _NO_VECTOR
    return list(rows)


def _check_size(row: Row, field: str, size: int) -> None:
    if size > MAX_BYTES:
        what = "a passage" if field == "text" else f"the {field}"
        owner = f" of document '{row['id']}'" if "id" in row else ""
        raise IndexStoreError(
            f"{what}{owner} has {size:,} bytes; Milvus takes up to {MAX_BYTES:,}; leave it out or "
            "shorten it"
        )


def listed(field: str, values: Sequence[int] | Sequence[str]) -> Iterator[str]:
    """Conditions that a field has one of these values, some at a time; the texts are hex digits."""
    for start in range(0, len(values), KEYS_AT_ONCE):
        some = [
            f'"{value}"' if isinstance(value, str) else str(int(value))
            for value in values[start : start + KEYS_AT_ONCE]
        ]
        yield f"{field} in [{', '.join(some)}]"


def both(*conditions: str) -> str:
    """A condition that all of these hold, of which some may be empty."""
    return " and ".join(f"({condition})" for condition in conditions if condition)
