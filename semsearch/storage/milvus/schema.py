"""The collections of an index: documents with the settings, passages, and each space's vectors.

    NAME            documents by id; the row with the empty id holds the settings
    NAME_passages   passages, with the words of BM25 where Milvus has that function
    NAME_space_1    the vectors of the first space; a row has the id of its passage

A document's row names its passages: `passages` ids from `first` on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from semsearch.errors import IndexFormatError
from semsearch.storage.milvus.conditions import KindCounts, one_of
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.spaces import Space
from semsearch.vector_indexes import AUTO

FORMAT_VERSION = 1
#: The property of our collections that holds their format.
_FORMAT = "semsearch.format"
#: The id of the row with the settings; documents have others.
SETTINGS_ID = ""

#: Each request sees what this process has written. A `LATEST` one also waits until it sees what
#: others have, on a server for 0.2 seconds.
READING, LATEST = {"consistency_level": "Session"}, {"consistency_level": "Strong"}

#: The longest text or JSON that a field takes.
MAX_BYTES = 65_535

#: Milvus requires a vector in every collection.
NO_VECTOR = [1.0, 0.0]

#: The kind of index for BM25.
WORDS = "SPARSE_INVERTED_INDEX"
#: The number of lists of an approximate vector index.
LISTS = 1024

DOCUMENT_COLUMNS = {
    "id": "VARCHAR",
    "document": "INT64",  # its number, in the order of addition
    "first": "INT64",
    "passages": "INT64",
    "title": "VARCHAR",  # JSON
    "metadata": "VARCHAR",  # JSON
    "ending": "VARCHAR",  # the text after the last passage
    "text_hash": "VARCHAR",  # empty while the passages of a new document are being written
    "fields": "JSON",
}
PASSAGE_COLUMNS = {
    "passage": "INT64",
    "id": "VARCHAR",  # of its document
    "document": "INT64",
    "start": "INT64",
    "end": "INT64",
    "before": "VARCHAR",  # the text between the previous passage and this one
    "text": "VARCHAR",
    "text_hash": "VARCHAR",
    "fields": "JSON",
}
VECTOR_COLUMNS = {"passage": "INT64", "document": "INT64", "fields": "JSON"}


class IndexRecord(NamedTuple):
    """What an index records about itself."""

    max_tokens: int
    spaces: list[Space]
    has_words: bool  #: whether Milvus searches words
    last_document: int = 0  #: the highest number of a document
    last_passage: int = 0  #: the highest id of a passage
    index_type: str = AUTO  #: as requested
    index_kind: str = "FLAT"  #: of the vector indexes
    fields: KindCounts = MappingProxyType({})
    unfinished_sync: int | None = None
    corpora: Mapping[str, dict[str, Any]] = MappingProxyType({})

    def row(self) -> Row:
        """The row that holds them."""
        spaces = [space._asdict() for space in self.spaces]
        values = {**self._asdict(), "spaces": spaces}
        empty = {name: 0 if kind == "INT64" else "" for name, kind in DOCUMENT_COLUMNS.items()}
        text = json.dumps(values, default=dict)
        return {**empty, "id": SETTINGS_ID, "metadata": text, "fields": {}, "vector": NO_VECTOR}


def read_record(
    connection: Connection, reading: Mapping[str, str] = MappingProxyType(READING)
) -> IndexRecord:
    """The settings of an index.

    Raises:
        IndexNotFoundError: the creation of the index was interrupted.
    """
    rows = connection.call(
        "query",
        connection.target.name,
        filter=one_of("id", [SETTINGS_ID]),
        output_fields=["metadata"],
        **reading,
    )
    if not rows:
        raise connection.target.not_found()
    values = json.loads(rows[0]["metadata"])
    return IndexRecord(**values | {"spaces": [Space(**space) for space in values["spaces"]]})


def check_ours(connection: Connection, name: str) -> bool:
    """Whether there is a collection with this name.

    Raises:
        IndexFormatError: it was made by something else, or has another format.
    """
    if not connection.call("has_collection", name):
        return False
    address = connection.target.address
    found = connection.call("describe_collection", name).get("properties", {}).get(_FORMAT)
    if found is None:
        raise IndexFormatError(
            f"{address}: the collection '{name}' was not made by semsearch; choose another name"
        )
    if found != str(FORMAT_VERSION):
        raise IndexFormatError(
            f"{address} has format {found}, and this semsearch reads format {FORMAT_VERSION}; "
            "index the corpus again under another name"
        )
    return True


def create(
    connection: Connection,
    name: str,
    columns: Mapping[str, str],
    dimension: int = len(NO_VECTOR),
    kind: str = "FLAT",
) -> None:
    """Create a collection in place of one that an interrupted command left.

    Args:
        connection: to Milvus.
        name: of the collection.
        columns: types by name, the primary key first; the vector follows.
        dimension: of the vector.
        kind: of its index; `WORDS` for one of the words of the column `text` instead.

    Raises:
        IndexFormatError: something else has its name.
    """
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    if check_ours(connection, name):
        connection.call("drop_collection", name)
    has_words = kind == WORDS
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for column, type_name in columns.items():
        options: dict[str, Any] = {"max_length": MAX_BYTES} if type_name == "VARCHAR" else {}
        if has_words and column == "text":
            options["enable_analyzer"] = True
        is_primary = column == next(iter(columns))
        schema.add_field(column, DataType[type_name], is_primary=is_primary, **options)
    if has_words:
        schema.add_field("vector", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["vector"]))
    else:
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    properties = {_FORMAT: str(FORMAT_VERSION)}
    connection.call("create_collection", name, schema=schema, properties=properties)
    build_index(connection, name, kind)


def build_index(connection: Connection, name: str, kind: str) -> None:
    """Let Milvus index the vectors of a collection and load it; requests wait until it has."""
    from pymilvus import MilvusClient

    indexes = MilvusClient.prepare_index_params()
    parameters = {"nlist": LISTS} if kind == "IVF_FLAT" else {}
    metric = "BM25" if kind == WORDS else "COSINE"
    indexes.add_index("vector", index_type=kind, metric_type=metric, params=parameters)
    connection.call("create_index", name, indexes, sync=False)
    connection.call("load_collection", name, _async=True)
