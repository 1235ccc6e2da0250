"""The collections of an index, and its record of itself.

    NAME            documents by id; the row with the empty id holds the record
    NAME_space_1    passages with their vectors in the first space, and words where Milvus has BM25

Documents are numbered in the order of their addition. The number of a document gives the ids of its
passages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from semsearch.errors import IndexFormatError
from semsearch.storage.interface import Settings
from semsearch.storage.milvus.conditions import one_of
from semsearch.storage.milvus.connection import Connection, Row
from semsearch.storage.spaces import Space
from semsearch.vector_indexes import IndexType

FORMAT_VERSION = 1
#: The property of our collections that holds their format.
_FORMAT = "semsearch.format"
#: The id of the row with the record; documents have others.
RECORD_ID = ""

#: The longest text or JSON that a field takes.
MAX_BYTES = 65_535
#: Milvus requires a vector in every collection.
NO_VECTOR = [1.0, 0.0]

#: Into how many lists Milvus divides the vectors. A search of all of them is exact.
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

    settings: Settings
    spaces: list[Space]
    last_document: int = 0  #: the highest number of a document
    kinds: Sequence[Sequence[str]] = ()  #: field and kind of all values so far

    def row(self) -> Row:
        """The row that holds it."""
        values = self._asdict() | {
            "settings": self.settings._asdict(),
            "spaces": [space._asdict() for space in self.spaces],
        }
        row: Row = {"id": RECORD_ID, "document": 0, "passages": 0, "title": "", "text_hash": ""}
        text = json.dumps(values, default=dict)
        return {**row, "metadata": text, "fields": {}, "vector": NO_VECTOR}


def read_record(connection: Connection, consistency: str = "Session") -> IndexRecord:
    """The record of an index.

    Raises:
        IndexNotFoundError: the creation of the index was interrupted.
    """
    of_record = one_of("id", [RECORD_ID])
    rows = connection.query(connection.name, of_record, ["metadata"], consistency)
    if not rows:
        raise connection.not_found()
    values = json.loads(rows[0]["metadata"])
    settings = Settings(**values.pop("settings"))
    settings = settings._replace(index_type=IndexType(*settings.index_type))
    spaces = [Space(**space) for space in values.pop("spaces")]
    return IndexRecord(settings, spaces, **values)


def is_collection(connection: Connection, name: str) -> bool:
    """Whether there is a collection with this name.

    Raises:
        IndexFormatError: it was made by something else, or has another format.
    """
    if not connection.call("has_collection", name):
        return False
    properties = connection.call("describe_collection", name).get("properties", {})
    if properties.get(_FORMAT) != str(FORMAT_VERSION):
        raise IndexFormatError(
            f"the collection '{name}' is not of this version of semsearch; choose another name"
        )
    return True


def create_collection(
    connection: Connection, name: str, columns: Mapping[str, str], dimension: int
) -> None:
    """Create a collection in place of one that an interrupted command left."""
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    if is_collection(connection, name):
        connection.call("drop_collection", name)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for place, (column, type_name) in enumerate(columns.items()):
        options: dict[str, Any] = {"max_length": MAX_BYTES} if type_name == "VARCHAR" else {}
        options |= {"enable_analyzer": True} if column == "text" and connection.has_bm25 else {}
        schema.add_field(column, DataType[type_name], is_primary=place == 0, **options)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("vector", "IVF_FLAT", metric_type="COSINE", params={"nlist": LISTS})
    if connection.has_bm25 and "text" in columns:
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["words"]))
        indexes.add_index("words", "SPARSE_INVERTED_INDEX", metric_type="BM25")
    properties = {_FORMAT: str(FORMAT_VERSION)}
    connection.call("create_collection", name, schema=schema, properties=properties)
    connection.call("create_index", name, indexes, sync=False)
    connection.call("load_collection", name)
