"""The collections of an index: documents with the settings, passages, and each space's vectors.

    NAME            documents by id; the row with the empty id holds the settings
    NAME_passages   passages, with the words of BM25 where Milvus has that function
    NAME_space_1    the vectors of the first space; a row has the id of its passage

A document's row names its passages: `passages` ids from `first` on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy

from semsearch.errors import IndexFormatError, IndexNotFoundError, IndexVersionError
from semsearch.protocols import Matrix
from semsearch.stores.milvus.conditions import KindCounts, one_of
from semsearch.stores.milvus.connection import Connection, Row, Target
from semsearch.stores.protocol import Space
from semsearch.vector_indexes import AUTO

FORMAT_VERSION = 1
#: The property of our collections that holds their format.
_FORMAT = "semsearch.format"
#: The id of the row with the settings; documents have others.
SETTINGS_ID = ""

#: The longest text that a field takes, and the longest JSON, in bytes.
MAX_BYTES = 65_535

#: Milvus requires a vector in every collection.
NO_VECTOR = [1.0, 0.0]

#: The lists of an approximate vector index.
LISTS = 1024

_DOCUMENTS = {
    "id": "VARCHAR",
    "document": "INT64",  # its number, in the order of addition
    "first": "INT64",
    "passages": "INT64",
    "title": "VARCHAR",  # JSON
    "metadata": "VARCHAR",  # JSON
    "ending": "VARCHAR",  # the text after the last passage
    "text_hash": "VARCHAR",  # empty while its passages are being written
    "fields": "JSON",
}
PASSAGE_COLUMNS = {
    "passage": "INT64",
    "document": "INT64",
    "start": "INT64",
    "end": "INT64",
    "before": "VARCHAR",  # the text between the previous passage and this one
    "text": "VARCHAR",
    "text_hash": "VARCHAR",
    "fields": "JSON",
}
_VECTORS = {"passage": "INT64", "document": "INT64", "fields": "JSON"}


class Settings(NamedTuple):
    """What an index records about itself."""

    max_tokens: int
    spaces: list[Space]
    has_words: bool  #: whether Milvus searches words
    last_document: int = 0  #: the highest number of a document
    last_passage: int = 0  #: the highest id of a passage
    index_type: str = AUTO  #: as requested
    fields: KindCounts = MappingProxyType({})
    unfinished_sync: int | None = None
    corpora: Mapping[str, dict[str, Any]] = MappingProxyType({})

    def row(self) -> Row:
        """The row that holds them."""
        values = self._asdict() | {
            "spaces": [space._asdict() for space in self.spaces],
            "fields": dict(self.fields),
            "corpora": dict(self.corpora),
        }
        empty = {name: 0 if kind == "INT64" else "" for name, kind in _DOCUMENTS.items()}
        return {
            **empty,
            "id": SETTINGS_ID,
            "metadata": json.dumps(values),
            "fields": {},
            "vector": NO_VECTOR,
        }


def read_settings(connection: Connection, reading: Mapping[str, Any]) -> Settings:
    """The settings of an index.

    Args:
        connection: to Milvus.
        reading: the consistency options.

    Raises:
        IndexNotFoundError: there is no such index, or its creation was interrupted.
        IndexFormatError: the collection is something else, or has another format.
    """
    name = connection.target.name
    if not connection.call("has_collection", name):
        raise not_found(connection.target)
    _check_ours(connection, name)
    rows = connection.call(
        "query", name, filter=one_of("id", [SETTINGS_ID]), output_fields=["metadata"], **reading
    )
    if not rows:
        raise not_found(connection.target)
    values = json.loads(rows[0]["metadata"])
    return Settings(**values | {"spaces": [Space(**space) for space in values["spaces"]]})


def not_found(target: Target) -> IndexNotFoundError:
    """The error that there is no index at an address."""
    return IndexNotFoundError(
        f"no index at {target.address}; make one with: semsearch index CORPUS --index "
        f"{target.address}"
    )


def passages_of(name: str) -> str:
    """The collection of the passages of an index."""
    return f"{name}_passages"


def vectors_of(name: str, space: Space) -> str:
    """The collection of the vectors of a space."""
    return f"{name}_space_{space.id}"


def create_documents(connection: Connection) -> None:
    """Create the collection of documents."""
    _create(connection, connection.target.name, _DOCUMENTS, "FLAT", "IP")


def create_passages(connection: Connection) -> None:
    """Create the collection of passages."""
    kind, metric = ("SPARSE_INVERTED_INDEX", "BM25") if connection.has_bm25 else ("FLAT", "IP")
    _create(connection, passages_of(connection.target.name), PASSAGE_COLUMNS, kind, metric)


def create_vectors(connection: Connection, space: Space) -> None:
    """Create the collection of the vectors of a space."""
    name = vectors_of(connection.target.name, space)
    _create(connection, name, _VECTORS, "FLAT", metric_of(space), space.dimension)


def build_index(connection: Connection, collection: str, kind: str, metric: str) -> None:
    """Let Milvus index the vectors of a collection and load it; requests wait until it has."""
    from pymilvus import MilvusClient

    indexes = MilvusClient.prepare_index_params()
    parameters = {"nlist": LISTS} if kind == "IVF_FLAT" else {}
    indexes.add_index("vector", index_type=kind, metric_type=metric, params=parameters)
    connection.call("create_index", collection, indexes, sync=False)
    connection.call("load_collection", collection, _async=True)


def metric_of(space: Space) -> str:
    """How vectors of a space are compared: rounding to float16 changes their length."""
    return "COSINE" if space.dtype == "float16" else "IP"


def rounded(space: Space, vectors: Matrix) -> Matrix:
    """Vectors as a space stores them: float32, with the values of its type."""
    return vectors.astype(space.dtype).astype(numpy.float32)


def unit_vectors(space: Space, rows: Sequence[Row]) -> Matrix:
    """The vectors of rows, with length 1."""
    matrix = numpy.array([row["vector"] for row in rows], numpy.float32)
    matrix = matrix.reshape(len(rows), space.dimension)
    if space.dtype == "float16":
        matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def _create(
    connection: Connection,
    name: str,
    columns: Mapping[str, str],
    kind: str,
    metric: str,
    dimension: int = len(NO_VECTOR),
) -> None:
    """Create a collection in place of one that an interrupted command left.

    Raises:
        IndexFormatError: something else has its name.
    """
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    if connection.call("has_collection", name):
        _check_ours(connection, name)
        connection.call("drop_collection", name)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    is_sparse = metric == "BM25"
    for column, kind_name in columns.items():
        options: dict[str, Any] = {"max_length": MAX_BYTES} if kind_name == "VARCHAR" else {}
        if is_sparse and column == "text":
            options["enable_analyzer"] = True
        is_primary = column == next(iter(columns))
        schema.add_field(column, DataType[kind_name], is_primary=is_primary, **options)
    if is_sparse:
        schema.add_field("vector", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["vector"]))
    else:
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    properties = {_FORMAT: str(FORMAT_VERSION)}
    connection.call("create_collection", name, schema=schema, properties=properties)
    build_index(connection, name, kind, metric)


def _check_ours(connection: Connection, name: str) -> None:
    address = connection.target.address
    properties = connection.call("describe_collection", name).get("properties", {})
    if _FORMAT not in properties:
        raise IndexFormatError(
            f"{address}: the collection '{name}' was not made by semsearch; choose another name"
        )
    if properties[_FORMAT] != str(FORMAT_VERSION):
        raise IndexVersionError(
            f"{address} has format {properties[_FORMAT]}, not {FORMAT_VERSION}, which this "
            "semsearch reads; index the corpus again under another name"
        )
