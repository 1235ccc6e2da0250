"""The description of an index, in the properties of its collection of documents.

Milvus keeps them in its coordinator, so a reader sees them as they were written last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from semsearch.addresses import Address
from semsearch.analysis import Language
from semsearch.errors import (
    DamagedIndexError,
    IndexFormatError,
    IndexNotFoundError,
    IndexVersionError,
)
from semsearch.stores.milvus.connection import Connection
from semsearch.stores.protocol import Space

FORMAT_VERSION = 1

_FORMAT, _MAX_TOKENS, _SPACES, _STATE, _WRITER, _SYNC, _CORPORA = (
    f"semsearch.{name}"
    for name in ("format", "max_tokens", "spaces", "state", "writer", "sync", "corpora")
)


class Bm25(Enum):
    """Whether an index has BM25."""

    NONE = "none"
    BUILDING = "building"
    READY = "ready"


class Content(NamedTuple):
    """The part of the description that each commit changes."""

    document: int = 0  #: the highest number that a document ever had
    row: int = 0  #: the same of passages, rows and versions, which share a sequence
    written: int = 0  #: the server's time after it; 0 where that is not known
    clean: bool = True  #: False while a commit is under way, and after one that was interrupted
    index_type: str = "auto"  #: what is asked for
    is_graph: bool = False  #: whether vectors are searched by HNSW, not exactly
    fields: Mapping[str, Mapping[str, int]] = {}  #: documents by field and kind of value
    bm25: str = Bm25.NONE.value
    passages: int = 0  #: that BM25 knows
    words: int = 0  #: that they have
    stemmer: str | None = None  #: of BM25's language; None for Porter's of English
    stop_words: Sequence[str] = ()

    @property
    def language(self) -> Language | None:
        """Whose stems BM25 uses."""
        return None if self.stemmer is None else Language(self.stemmer, tuple(self.stop_words))

    def with_totals(self, totals: tuple[int, int]) -> Content:
        """The same with other counts of passages and words."""
        return self._replace(passages=totals[0], words=totals[1])

    def with_language(self, language: Language | None) -> Content:
        """The same with another language."""
        name, stop_words = language or (None, ())
        return self._replace(stemmer=name, stop_words=stop_words)


class Catalogue(NamedTuple):
    """All properties."""

    max_tokens: int
    spaces: list[Space]
    content: Content
    writer: Mapping[str, Any]  #: who is writing; empty for nobody
    sync: Mapping[str, int]  #: the documents before a sync; empty once it has finished
    corpora: dict[str, dict[str, Any]]  #: how they were read


def read_catalogue(connection: Connection) -> Catalogue:
    """The properties of an index.

    Raises:
        IndexNotFoundError: there is no collection of that name.
        IndexFormatError: the collection is something else, or of a newer format.
    """
    address = connection.target.address
    if not connection.has(connection.name):
        raise not_found(address)
    properties = connection.call("describe_collection", connection.name).get("properties", {})
    if _FORMAT not in properties:
        raise IndexFormatError(
            f"{address}: the collection '{connection.name}' was not made by semsearch; "
            "choose another name"
        )
    if properties[_FORMAT] != str(FORMAT_VERSION):
        raise IndexVersionError(
            f"{address} has format {properties[_FORMAT]}, this semsearch knows format "
            f"{FORMAT_VERSION}; update semsearch"
        )
    try:
        return Catalogue(
            int(properties[_MAX_TOKENS]),
            [Space(**space) for space in json.loads(properties[_SPACES])],
            Content(**json.loads(properties[_STATE])),
            json.loads(properties.get(_WRITER, "{}")),
            json.loads(properties.get(_SYNC, "{}")),
            json.loads(properties.get(_CORPORA, "{}")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedIndexError(f"{address}: its properties are damaged ({error})") from error


def not_found(address: Address) -> IndexNotFoundError:
    """The error that there is no index at an address."""
    return IndexNotFoundError(
        f"no index at {address}; make one with: semsearch index CORPUS --index {address}"
    )


def first_properties(max_tokens: int, spaces: list[Space], bm25: Bm25) -> dict[str, str]:
    """The properties of a new index."""
    return {
        _FORMAT: str(FORMAT_VERSION),
        _MAX_TOKENS: str(max_tokens),
        **_written(spaces=spaces, content=Content(bm25=bm25.value)),
    }


def write_catalogue(
    connection: Connection,
    *,
    spaces: list[Space] | None = None,
    content: Content | None = None,
    writer: Mapping[str, Any] | None = None,
    sync: Mapping[str, int] | None = None,
    corpora: Mapping[str, dict[str, Any]] | None = None,
) -> None:
    """Replace those properties that are given."""
    changed = _written(spaces, content, writer, sync, corpora)
    # Twice: when a server of version 2.3.5 starts again, it has the properties that were last but
    # one, however long ago the last ones were written.
    for _ in range(1 if connection.target.is_file else 2):
        connection.call("alter_collection_properties", connection.name, changed)


def _written(
    spaces: list[Space] | None = None,
    content: Content | None = None,
    writer: Mapping[str, Any] | None = None,
    sync: Mapping[str, int] | None = None,
    corpora: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, str]:
    values = {
        _SPACES: None if spaces is None else [space._asdict() for space in spaces],
        _STATE: None if content is None else content._asdict(),
        _WRITER: writer,
        _SYNC: sync,
        _CORPORA: corpora,
    }
    return {name: json.dumps(value) for name, value in values.items() if value is not None}
