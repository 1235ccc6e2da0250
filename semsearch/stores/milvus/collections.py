"""The collections of an index: documents, passages, the vectors of each space, and words.

A document is what its row says: a passage or a vector whose version is not the one that the
document's row names is not there, for whoever reads. So a document appears, changes and goes with
one row, whatever has been written for it before or is still to be deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy

from semsearch.errors import IndexFormatError
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


class Collection(NamedTuple):
    """A collection to be made."""

    name: str
    columns: dict[str, str]  #: types by name, the primary key first; the vector follows them
    dimension: int = 2  #: of its vector; 0 for a sparse one
    metric: str = "IP"

    def schema(self) -> Any:
        """Its columns as the client describes them."""
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        for column, kind in self.columns.items():
            options: dict[str, Any] = {"max_length": MAX_BYTES} if kind == "VARCHAR" else {}
            schema.add_field(
                column, DataType[kind], is_primary=column == next(iter(self.columns)), **options
            )
        if self.dimension:
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.dimension)
        else:
            schema.add_field("vector", DataType.SPARSE_FLOAT_VECTOR)
        return schema


def documents_collection(connection: Connection) -> Collection:
    """The collection of documents."""
    columns = {
        "key": "VARCHAR",
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
    return Collection(documents_of(connection), columns)


def passages_collection(connection: Connection) -> Collection:
    """The collection of passages."""
    columns = {
        "chunk": "INT64",
        "document": "INT64",
        "version": "INT64",
        "start": "INT64",
        "end": "INT64",
        "text": "VARCHAR",
        "text_hash": "VARCHAR",
    }
    return Collection(passages_of(connection), columns)


def vectors_collection(connection: Connection, space: Space) -> Collection:
    """The collection of a space's vectors."""
    columns = {
        "row": "INT64",
        "chunk": "INT64",
        "document": "INT64",
        "version": "INT64",
        "fields": "JSON",
    }
    name, metric = vectors_of(connection, space), metric_of(space)
    return Collection(name, columns, space.dimension, metric)


def words_collections(connection: Connection) -> list[Collection]:
    """The collections for BM25."""
    terms = {"term": "INT64", "passages": "INT64"}
    return [vectors_collection(connection, WORDS), Collection(terms_of(connection), terms)]


def make(
    connection: Connection,
    collections: Sequence[Collection],
    properties: dict[str, str] | None = None,
) -> None:
    """Make collections, instead of those that an interrupted command has left.

    Raises:
        IndexFormatError: there is something else of one of these names; nothing is changed.
    """
    left = [one for one in collections if connection.has(one.name)]
    for one in left:
        _check_ours(connection, one)
    for one in left:
        connection.call("drop_collection", one.name)
    for one in collections:
        connection.call(
            "create_collection",
            one.name,
            schema=one.schema(),
            consistency_level="Strong",
            properties=properties or {},
        )
        kind = "FLAT" if one.dimension else "SPARSE_INVERTED_INDEX"
        build_index(connection, one.name, kind, one.metric)


def _check_ours(connection: Connection, wanted: Collection) -> None:
    found = connection.call("describe_collection", wanted.name)["fields"]
    columns = [(field.name, field.dtype) for field in wanted.schema().fields]
    if [(field["name"], field["type"]) for field in found] != columns:
        raise IndexFormatError(
            f"{connection.target.address}: the index needs a collection '{wanted.name}', but that "
            "name is taken by something else; choose another name for the index"
        )


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
    """Rows of documents or passages as Milvus wants them."""
    for row in rows:
        row["vector"] = _NO_VECTOR
    return list(rows)


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
