"""The interface of stores: what search and indexing need of a database, and its records.

A store is a package with the functions `open_store` and `create_store`; see `semsearch.storage`.
It translates filters, which are passed as parsed conditions (`semsearch.filters`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from semsearch.protocols import Encoder, Matrix
from semsearch.records import Document, Kind, Metadata, Passage, Where
from semsearch.storage.spaces import Space
from semsearch.vector_indexes import IndexType

if TYPE_CHECKING:
    from semsearch.filters import Condition, Value
    from semsearch.storage.words import Language

logger = logging.getLogger(__name__)


#: Documents whose values are counted; of more, a sample.
FACET_DOCUMENTS = 50_000


class Field(NamedTuple):
    """A metadata field."""

    name: str
    kinds: dict[str, int]  #: documents by kind, such as ``number`` or ``list of text``
    example: Value | None = None  #: a value, or an element of a list, of the most frequent kind


class FieldValues(NamedTuple):
    """The values of a metadata field in documents, with those in lists."""

    name: str
    kinds: list[str]  #: sorted; see `Kind`
    #: The most frequent texts, and how often they occur; none if most documents have their own.
    values: list[tuple[str, int]]
    least: float | str | None  #: of the numbers, or of the dates, except those in lists
    greatest: float | str | None
    #: The numbers of numbers, or of dates, in bins from the least to the greatest of all documents;
    #: empty for other fields, and for numbers that name documents.
    histogram: list[int]


class ScoredPassage(NamedTuple):
    """A document found by a search, with its best passage."""

    document_id: int
    passage_id: int
    score: float


class Restriction(NamedTuple):
    """What a search may find."""

    condition: Condition | None = None
    required: tuple[str, ...] = ()  #: phrases that some passage contains, as BM25 reads words
    excluded: tuple[str, ...] = ()  #: words and phrases that no passage contains
    per_document: int = 1  #: the maximum number of passages of a document


NO_RESTRICTION = Restriction()


class FoundPassage(NamedTuple):
    """A passage with the metadata and title of its document."""

    passage: Passage
    metadata: Metadata
    title: str | None


class Passages(NamedTuple):
    """Passages as columns, in the order of their addition."""

    document_ids: list[str]  #: external ids of their documents
    documents: NDArray[numpy.int64]  #: their internal numbers
    passage_ids: NDArray[numpy.int64]
    texts: list[str]
    vectors: Matrix


class StoredDocument(NamedTuple):
    """The stored record of a document, to compare with a new version of it."""

    document_id: int
    title: str | None
    metadata: str  #: JSON
    text_hash: str


class NewPassage(NamedTuple):
    """A passage to store: the characters [start, end) of its document."""

    start: int
    end: int
    text: str
    text_hash: str


class NewDocument(NamedTuple):
    """A document to store, or to update without its passages."""

    id: str
    text: str
    title: str | None
    metadata: str  #: JSON
    text_hash: str
    passages: Sequence[NewPassage] | None  #: None keeps the stored passages


class Selection(NamedTuple):
    """The documents that meet all given conditions."""

    ids: Sequence[str] | None = None
    condition: Condition | None = None


EVERYTHING = Selection()

#: Stored vectors by space id and `text_hash`, each of shape (dimension,).
TextVectors = dict[tuple[int, str], Matrix]


class SnapshotInfo(NamedTuple):
    """A snapshot: a file with the vector index of a space."""

    file: str
    kind: str
    vectors: int
    recall: float  #: recall@10 against exact search, its lower bound; 1 for an exact kind


class IndexInfo(NamedTuple):
    """The contents of an index."""

    path: Path
    format: int
    documents: int
    passages: int
    fields: list[Field]
    spaces: list[Space]
    snapshots: dict[str, SnapshotInfo]  #: by the name of their space
    files: dict[str, int]  #: bytes by file name
    language: Language | None  #: of BM25's stemmer; None for the Porter stemmer
    indexed_fields: list[str]  #: metadata fields with an index for filters, sorted
    has_words: bool = True  #: whether BM25 search is available

    @property
    def systems(self) -> list[str]:
        """The names of its search systems: complete spaces and, if available, ``bm25``."""
        complete = [space.name for space in self.spaces if space.complete]
        return [*complete, *(["bm25"] if self.has_words else [])]

    @property
    def stop_words(self) -> tuple[str, ...]:
        """The stop words of BM25's language, if it has one."""
        return self.language.stop_words if self.language else ()


class Fault(NamedTuple):
    """A fault found by verification."""

    what: str
    repairable: bool = True  #: from the other data of the store

    @property
    def remedy(self) -> str:
        """The command that repairs it."""
        if self.repairable:
            return "semsearch verify --repair"
        return "semsearch index CORPUS --index NEW-DIRECTORY"


class Settings(NamedTuple):
    """The settings of an index, which `Writer.configure` changes."""

    max_tokens: int  #: the maximum number of tokens of a passage
    index_type: IndexType = IndexType()  #: the requested type of vector index
    language: Language | None = None  #: of BM25's stemmer; None for the Porter stemmer
    #: How corpora were read (see `Readings`), by `recorded_name`.
    corpora: Mapping[str, dict[str, Any]] = MappingProxyType({})


class Reader(Protocol):
    """One committed state of a store."""

    def settings(self) -> Settings:
        """The settings of the index."""

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""

    def info(self) -> IndexInfo:
        """The contents of the index."""

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name; none for those no longer in use."""

    def field_values(self, condition: Condition | None = None) -> list[FieldValues]:
        """The metadata fields with values and bounds, which a store may leave out."""

    def texts_like(self, field: str, typed: str, limit: int = 20) -> list[tuple[str, int]]:
        """Texts of a field that contain what was typed, and how often they occur."""

    # Documents and passages.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""

    def ids(
        self, selection: Selection = EVERYTHING, limit: int | None = None, offset: int = 0
    ) -> list[str]:
        """The ids of all documents, or of selected ones, in insertion order."""

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""

    def scan(self, size: int = 256) -> Iterator[list[Document]]:
        """All documents in insertion order, in lists of at most `size`."""

    def stored_documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The records of documents to compare with, by id."""

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""

    def vectors_of_texts(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """Passage id, text and document id of passages above an id that have no vector."""

    # Search.

    def prepare(self, space: Space) -> None:
        """Load the data for searching a space, ahead of the search."""

    def search_vectors(
        self, space: Space, queries: Matrix, k: int, restriction: Restriction = NO_RESTRICTION
    ) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query, best first, equal scores by passage id.

        Args:
            space: the embedding space.
            queries: unit vectors, float32, shape (m, dimension).
            k: the number of passages; there are fewer only if fewer match.
            restriction: the passages that may be found.

        Raises:
            SpaceError: the space was dropped, or some passages have no vector.
        """

    def search_bm25(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        phrases: Sequence[str] = (),
    ) -> list[ScoredPassage]:
        """The `k` best passages by BM25, best first: those with the most of the phrases lead."""

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        """The passages with these ids, as far as they exist."""

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of passages, as BM25 reads them, that occur in a text."""


class Writer(Protocol):
    """A writer of a store. Each method that changes the store is one transaction."""

    def read(self) -> AbstractContextManager[Reader]:
        """The current state, which does not change until the block ends."""

    def oversized_documents(self, documents: Sequence[NewDocument]) -> Mapping[str, str]:
        """Why the store cannot hold documents, by their ids: ``its title has 70,000 bytes``."""

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or update those with the same ids."""

    def remove(self, selection: Selection) -> int:
        """Remove documents; returns their number."""

    def add_space(self, encoder: Encoder) -> Space:
        """Add a space, which is incomplete."""

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""

    def put_vectors(self, space: Space, passage_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the missing vectors of passages."""

    def complete(self, space: Space) -> None:
        """Make a space searchable, once each passage has a vector."""

    def describe(self, space: Space, description: Mapping[str, Any]) -> None:
        """Replace the description of a space's encoder."""

    def configure(self, settings: Settings) -> None:
        """Change the settings. Raises ArgumentError if the store lacks one."""

    def index_field(self, name: str) -> None:
        """Index the values of a metadata field for filters."""

    def optimise(self) -> None:
        """Update the vector indexes if enough has changed."""

    def compact(self) -> None:
        """Rewrite all files without deleted data. Raises IndexBusyError if an old state is read."""

    def verify(self) -> list[Fault]:
        """Check the store and return all faults."""

    def repair(self) -> None:
        """Rebuild derived data, and remove damaged vectors.

        Spaces may be incomplete afterwards, until `put_vectors` and `complete` complete them.
        """


class Store(Protocol):
    """Documents with their passages and vectors."""

    @property
    def path(self) -> Path:
        """Its directory or address."""

    def read(self) -> AbstractContextManager[Reader]:
        """One committed state, unchanged until the block ends."""

    def writer(self, *, wait: float = 0) -> AbstractContextManager[Writer]:
        """A writer, for one thread of one process at a time; the threads of a process queue.

        Raises:
            IndexBusyError: after `wait` seconds another process writes, or this thread does.
        """

    def close(self) -> None:
        """Release its files or connections."""


def parse_filter(reader: Reader, where: Where) -> Condition:
    """Parse a filter and check it against the fields of an index; raises FilterError."""
    from semsearch.filters.checking import check
    from semsearch.filters.parsing import condition_of

    return check(condition_of(where), reader.fields())


def warn_if_none_match(reader: Reader, condition: Condition) -> None:
    """Log a warning if a filter matches no document."""
    if not reader.ids(Selection(condition=condition), limit=1):
        logger.warning("no document matches the filter")


def text_hash(text: str) -> str:
    """The hash that identifies a text: 128 bits of BLAKE2b, as hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def unit_vectors(reader: Reader, space: Space, hashes: Sequence[str]) -> Matrix:
    """The vectors of texts in a space, shape (len(hashes), dimension); see `text_hash`."""
    stored = reader.vectors_of_texts(hashes)
    rows = [stored[space.id, digest] for digest in hashes]
    return numpy.array(rows, numpy.float32).reshape(len(rows), space.dimension)


@contextmanager
def closed_on_error(opened: Any) -> Iterator[None]:
    """Close `opened` if the block raises."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
