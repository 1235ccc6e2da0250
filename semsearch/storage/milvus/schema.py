"""The collections of an index, and its record of itself.

    NAME            documents by id; the row with the empty id holds the record
    NAME_passages   passages, with the words of BM25 where Milvus has that function
    NAME_space_1    the vectors of the first space; a row has the id of its passage

Documents are numbered in the order of their addition. The number of a document gives the ids of its
passages, so a changed document is written over its former passages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from semsearch.errors import IndexFormatError, IndexVersionError
from semsearch.storage.milvus.conditions import one_of
from semsearch.storage.milvus.connection import READING, Connection, Row
from semsearch.storage.spaces import Space
from semsearch.vector_indexes import AUTO

FORMAT_VERSION = 1
#: The property of our collections that holds their format.
_FORMAT = "semsearch.format"
#: The id of the row with the record; documents have others.
RECORD_ID = ""

#: The longest text or JSON that a field takes.
MAX_BYTES = 65_535

#: Milvus requires a vector in every collection.
NO_VECTOR = [1.0, 0.0]

#: The kinds of index for vectors, exact and approximate, and for BM25.
EXACT, APPROXIMATE, WORDS = "FLAT", "IVF_FLAT", "SPARSE_INVERTED_INDEX"
#: The number of lists of an approximate vector index.
LISTS = 1024

#: A passage's id is the number of its document, shifted by these bits, and its place there.
_PLACE_BITS = 24

DOCUMENT_COLUMNS = {
    "id": "VARCHAR",
    "document": "INT64",  # its number
    "passages": "INT64",
    "title": "VARCHAR",  # JSON
    "metadata": "VARCHAR",  # JSON
    "text_hash": "VARCHAR",  # empty while the document is being written or removed
    "fields": "JSON",  # for filters; see `semsearch.storage.milvus.conditions`
}
PASSAGE_COLUMNS = {
    "passage": "INT64",
    "id": "VARCHAR",  # of its document
    "document": "INT64",
    "start": "INT64",
    "end": "INT64",
    "before": "VARCHAR",  # the text between the previous passage and this one
    "text": "VARCHAR",
    "after": "VARCHAR",  # the text after the last passage
    "text_hash": "VARCHAR",
    "fields": "JSON",
}
VECTOR_COLUMNS = {"passage": "INT64", "document": "INT64", "text_hash": "VARCHAR", "fields": "JSON"}


def passage_ids(documents: Iterable[Row]) -> list[int]:
    """The ids of the passages of documents."""
    return [
        (row["document"] << _PLACE_BITS) + place
        for row in documents
        for place in range(row["passages"])
    ]


def document_of(passage: int) -> int:
    """The number of the document of a passage."""
    return passage >> _PLACE_BITS


class IndexRecord(NamedTuple):
    """What an index records about itself."""

    max_tokens: int
    spaces: list[Space]
    has_words: bool  #: whether Milvus searches words
    last_document: int = 0  #: the highest number of a document
    index_type: str = AUTO  #: as requested
    index_kind: str = EXACT  #: of the vector indexes
    kinds: Mapping[str, list[str]] = MappingProxyType({})  #: of values so far, by field in filters
    unfinished_sync: int | None = None
    corpora: Mapping[str, dict[str, Any]] = MappingProxyType({})

    def row(self) -> Row:
        """The row that holds it."""
        spaces = [space._asdict() for space in self.spaces]
        text = json.dumps({**self._asdict(), "spaces": spaces}, default=dict)
        empty = {"VARCHAR": "", "INT64": 0, "JSON": {}}
        row = {name: empty[kind] for name, kind in DOCUMENT_COLUMNS.items()}
        return {**row, "id": RECORD_ID, "metadata": text, "vector": NO_VECTOR}


def read_record(connection: Connection, reading: dict[str, str] = READING) -> IndexRecord:
    """The record of an index.

    Raises:
        IndexNotFoundError: the creation of the index was interrupted.
    """
    of_record = one_of("id", [RECORD_ID])
    rows = connection.query(connection.target.name, of_record, ["metadata"], reading)
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
        raise IndexVersionError(
            f"{address} has format {found}, and this semsearch reads format {FORMAT_VERSION}; "
            "index the corpus again under another name"
        )
    return True


def create(
    connection: Connection,
    name: str,
    columns: Mapping[str, str],
    dimension: int = len(NO_VECTOR),
    kind: str = EXACT,
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
    for place, (column, type_name) in enumerate(columns.items()):
        options: dict[str, Any] = {"max_length": MAX_BYTES} if type_name == "VARCHAR" else {}
        if has_words and column == "text":
            options["enable_analyzer"] = True
        schema.add_field(column, DataType[type_name], is_primary=place == 0, **options)
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
    parameters = {"nlist": LISTS} if kind == APPROXIMATE else {}
    metric = "BM25" if kind == WORDS else "COSINE"
    indexes.add_index("vector", index_type=kind, metric_type=metric, params=parameters)
    connection.call("create_index", name, indexes, sync=False)
    connection.call("load_collection", name, _async=True)
