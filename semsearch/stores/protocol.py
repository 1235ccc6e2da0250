"""The interface of stores: what search and indexing need of a database, and the records of both.

A store holds documents, their passages, and one vector per passage and embedding space. Readers get
one committed state at a time (`StoreState`); one process at a time writes (`StoreWriter`). Filters
are passed as parsed conditions (`semsearch.filters`), which each store translates.

A store is a package below `semsearch.stores` with the two functions of `StoreModule`.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from numpy import int64
from numpy.typing import NDArray

from semsearch.arguments import shown
from semsearch.encoders.specs import Precision, described_precision, pinned, unpinned
from semsearch.errors import ArgumentError, SpaceError, SpaceNotFoundError, quoted
from semsearch.protocols import Encoder, Matrix
from semsearch.records import STORED_TYPES, Chunk, Document, Kind, Metadata

if TYPE_CHECKING:
    from semsearch.analysis import Language
    from semsearch.filters import Condition, Value
    from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)


class Field(NamedTuple):
    """A metadata field."""

    name: str
    kinds: dict[str, int]  #: documents by kind, such as ``number`` or ``list of text``
    example: Value | None = None  #: a value, or an element of a list, of the most frequent kind


NAME_MAX_CHARACTERS = 64


class Space(NamedTuple):
    """An embedding space: one encoder's vectors of all passages, with a record of the encoder."""

    id: int
    name: str
    spec: str
    fingerprint: str
    dimension: int
    dtype: str
    complete: bool  # False while some chunks have no vector yet
    description: dict[str, Any]

    @property
    def precision(self) -> Precision:
        """The precision with which to load its encoder."""
        return described_precision(self.description)

    def check(self, encoder: Encoder, index: Path) -> None:
        """Refuse an encoder other than that of the space.

        Args:
            encoder: the encoder that the space's spec names now.
            index: the directory, for the message.

        Raises:
            SpaceError: its fingerprint differs from that of the space.
        """
        if encoder.fingerprint != self.fingerprint:
            raise SpaceError(
                f"space '{self.name}' was made by another model than the current '{encoder.spec}', "
                "or by a version of semsearch that checked fewer of its files (fingerprint "
                f"{self.fingerprint[:12]} then, {encoder.fingerprint[:12]} now); restore the "
                "original model, or encode the passages again: semsearch index --add-space "
                f"{quoted(encoder.spec)} --index {quoted(str(index))}, "
                f"then --drop-space {self.name}"
            )

    def check_dtype(self, dtype: str | None) -> None:
        """Refuse a number type that differs from that of the stored vectors.

        Raises:
            SpaceError: the type differs.
        """
        check_stored_type(dtype)
        if dtype not in (None, self.dtype):
            raise SpaceError(
                f"space '{self.name}' stores {self.dtype}, not {dtype}; "
                "the type is chosen when a space is created"
            )


def warn_of_cut_passages(encoder: Encoder, max_tokens: int) -> None:
    """Log a warning if an encoder reads less than the longest passages of an index."""
    if encoder.max_document_tokens < max_tokens:
        logger.warning(
            "%s reads %d tokens; passages here have up to %d, and long ones are truncated",
            encoder.spec,
            encoder.max_document_tokens,
            max_tokens,
        )


def check_stored_type(dtype: str | None) -> None:
    """Refuse an invalid type of stored vectors.

    Raises:
        ArgumentError: it is neither one of `STORED_TYPES` nor None.
    """
    if dtype is not None and dtype not in STORED_TYPES:
        choices = " or ".join(f"'{name}'" for name in STORED_TYPES)
        raise ArgumentError(f"dtype must be {choices}, not {shown(dtype)}")


def free_name(spec: str, taken: Collection[str]) -> str:
    """A short unused name, safe in file names: `sentence-transformers/all-X` → `all-x`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", PurePath(unpinned(spec)).name.lower())
    slug = slug[:NAME_MAX_CHARACTERS].strip("-") or "space"
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


def described_space(
    encoder: Encoder, dtype: str | None, spaces: Sequence[Space], *, complete: bool
) -> Space:
    """A new space for an encoder's vectors, named after its spec.

    Raises:
        ArgumentError: `dtype` is neither float32 nor float16.
    """
    check_stored_type(dtype)
    description = dict(encoder.description())
    spec = pinned(encoder.spec, description.get("commit"))
    return Space(
        id=1 + max((space.id for space in spaces), default=0),
        name=free_name(spec, {space.name for space in spaces}),
        spec=spec,
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        dtype=dtype or STORED_TYPES[0],
        complete=complete,
        description=description,
    )


def find_space(spaces: Sequence[Space], name: str | None = None) -> Space:
    """The space with this name; without a name, the first.

    Raises:
        SpaceError: there is no space with this name.
    """
    for space in spaces:
        if name is None or space.name == name:
            return space
    names = ", ".join(space.name for space in spaces)
    raise SpaceNotFoundError(f"no space '{name}' in this index (spaces: {names})")


def check_searchable(space: Space, spaces: Sequence[Space]) -> None:
    """Refuse to search a space that was dropped or is incomplete.

    Args:
        space: the space, as it was when it was opened.
        spaces: the present spaces of the index.

    Raises:
        SpaceError: it was dropped, or some passages have no vector.
    """
    for found in spaces:
        if (found.id, found.fingerprint) == (space.id, space.fingerprint):
            if not found.complete:
                raise SpaceError(
                    f"space '{space.name}' lacks vectors of some passages; complete it with: "
                    f"semsearch index --add-space {quoted(space.spec)}"
                )
            return
    raise SpaceNotFoundError(f"space '{space.name}' was dropped from the index; open another one")


class Candidate(NamedTuple):
    """A document found by a search, with its best chunk."""

    document_id: int
    chunk_id: int
    score: float


class Restriction(NamedTuple):
    """The documents that a search may find."""

    condition: Condition | None = None
    required: tuple[str, ...] = ()  #: phrases that some passage contains, as BM25 reads words
    excluded: tuple[str, ...] = ()  #: words and phrases that no passage contains


NO_RESTRICTION = Restriction()


class FoundPassage(NamedTuple):
    """A chunk with the metadata and title of its document."""

    chunk: Chunk
    metadata: Metadata
    title: str | None


class Passages(NamedTuple):
    """Passages as columns, in the order of their addition."""

    document_ids: list[str]  #: external ids of their documents
    documents: NDArray[int64]  #: internal numbers of their documents
    chunk_ids: NDArray[int64]
    texts: list[str]
    vectors: Matrix


class StoredDocument(NamedTuple):
    """The stored record of a document, to compare with a new version of it."""

    document_id: int
    title: str | None
    metadata: str  #: JSON
    text_hash: str


class Seen(NamedTuple):
    """A document that the current run has read."""

    source: str
    repeats: int  #: later documents with the same content and no id


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
    unseen: bool = False  #: not read by the current run


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
    chunks: int
    fields: list[Field]
    spaces: list[Space]
    snapshots: dict[str, SnapshotInfo]  #: by the name of their space
    files: dict[str, int]  #: bytes by file name
    language: Language | None  #: of BM25's stemmer; None for the Porter stemmer
    indexed_fields: list[str]  #: metadata fields with an index for filters, sorted
    has_words: bool = True  #: whether BM25 search is available

    @property
    def stop_words(self) -> tuple[str, ...]:
        """The stop words of BM25's language, if it has one."""
        return self.language.stop_words if self.language else ()


class Fault(NamedTuple):
    """A fault found by verification."""

    what: str
    repairable: bool | None = True  #: from the other data of the store; None if that is unknown

    @property
    def remedy(self) -> str:
        """The command that repairs it."""
        commands = ["semsearch verify --repair", "semsearch index CORPUS --index NEW-DIRECTORY"]
        if self.repairable is None:
            return "; if that fails: ".join(commands)
        return commands[0] if self.repairable else commands[1]


class StoreState(Protocol):
    """One committed state of a store."""

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a passage."""

    @property
    def index_type(self) -> IndexType:
        """The requested type of vector index."""

    @property
    def unfinished_sync(self) -> int | None:
        """The number that `StoreWriter.note_sync` recorded."""

    @property
    def corpora(self) -> dict[str, dict[str, Any]]:
        """How corpora were read, as `StoreWriter.note_corpora` recorded it."""

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""

    def info(self) -> IndexInfo:
        """The contents of the index."""

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of all documents, or of selected ones, in the order of addition."""

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of addition.

        Args:
            last: the number of the previous document; 0 to start.
            limit: the maximum number of documents.
        """

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The stored records of the documents with these ids."""

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The undamaged stored vectors of texts, whatever their documents."""

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""

    # Search.

    def prepare(self, space: Space) -> None:
        """Load the data for searching a space, ahead of the search."""

    def search_vectors(
        self,
        space: Space,
        queries: Matrix,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[list[Candidate]]:
        """The `k` best passages of each query (fewer only when fewer match), best first.

        Equal scores are ordered by chunk id.

        Args:
            space: the embedding space.
            queries: unit vectors, float32, shape (m, dimension).
            k: the number of passages.
            restriction: the documents that may be found.
            per_document: the maximum number of passages per document.

        Raises:
            SpaceError: the space was dropped, or some passages have no vector.
            IndexChangedError: the state is no longer available; read the store again.
        """

    def plan(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[Candidate]:
        """The `k` best passages by BM25 over their words, best first.

        Passages with one of the phrases rank above those without; the more phrases, the higher.
        """

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of chunks, as BM25 reads them, that occur in a text."""

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids.

        Args:
            chunk_ids: the chunks.
            missing_ok: omit chunks that no longer exist, instead of reporting damage.
        """

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name.

        Fields of deleted documents may be among them, without kinds.
        """

    # The current run over a corpus, which can have more ids than fit in memory.

    def begin_run(self) -> None:
        """Start a run: no document has been seen."""

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has seen."""

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Mark documents as seen."""


class StoreWriter(Protocol):
    """A writer of a store. Each method that changes the store is one transaction."""

    def state(self) -> AbstractContextManager[StoreState]:
        """The current state, which does not change until the block ends."""

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or update those with the same ids."""

    def remove(self, selection: Selection) -> int:
        """Remove documents; returns their number."""

    def note_sync(self, documents: int | None) -> None:
        """Record the number of documents before a sync or copy; None when it has finished."""

    def note_corpora(self, readings: Mapping[str, dict[str, Any]]) -> None:
        """Record how corpora are read: arguments of `Corpus`, as JSON, by `recorded_name`."""

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """Add a space, which is incomplete."""

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""

    def put_vectors(self, space: Space, chunk_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the missing vectors of passages."""

    def mark_complete(self, space: Space) -> None:
        """Make a space searchable, once each passage has a vector."""

    def choose_index_type(self, wanted: IndexType) -> None:
        """Request a type of vector index, which `optimise` builds."""

    def index_field(self, name: str) -> None:
        """Index the values of a metadata field for filters."""

    def set_language(self, language: Language) -> None:
        """Set the language of BM25's stemmer and stop words."""

    def optimise(self, *, thoroughly: bool = False) -> None:
        """Update the vector indexes if enough has changed.

        Args:
            thoroughly: update them after any change.
        """

    def compact(self) -> None:
        """Rewrite all files without deleted data.

        Raises:
            IndexBusyError: another process reads an older state.
        """

    def verify(self) -> list[Fault]:
        """Check the store and return all faults."""

    def repair(self) -> None:
        """Rebuild derived data, and remove damaged vectors.

        Spaces may be incomplete afterwards, until `put_vectors` and `mark_complete` complete them.
        """


class LimitedWriter(StoreWriter, Protocol):
    """A writer of a store that cannot hold every document."""

    def misfits(self, documents: Sequence[NewDocument]) -> Mapping[str, str]:
        """Why the store cannot hold documents, by their ids: ``its title has 70,000 bytes``."""


def misfits(writer: StoreWriter, documents: Sequence[NewDocument]) -> Mapping[str, str]:
    """Why the writer's store cannot hold documents, by their ids."""
    is_limited = hasattr(writer, "misfits")
    return cast("LimitedWriter", writer).misfits(documents) if is_limited else {}


class Store(Protocol):
    """Documents with their passages and vectors."""

    @property
    def path(self) -> Path:
        """Its directory or address."""

    def read(self) -> AbstractContextManager[StoreState]:
        """One committed state, unchanged until the block ends.

        Raises:
            IndexChangedError: the state was overwritten; discard what was read.
        """

    def writer(self, *, wait: float = 0) -> AbstractContextManager[StoreWriter]:
        """A writer, for one thread of one process at a time; the threads of a process queue.

        Args:
            wait: how many seconds to wait for another process that is writing.

        Raises:
            IndexBusyError: another process is still writing, or this thread is.
        """

    def close(self) -> None:
        """Release its files or connections."""


class StoreModule(Protocol):
    """The functions of a store's package."""

    def open_store(self, path: Path) -> Store:
        """Open a store.

        Args:
            path: its directory or address.

        Raises:
            IndexNotFoundError: there is no store.
            IndexFormatError: it is not a store, or has another format.
        """

    def create_store(
        self, path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
    ) -> Store:
        """Open a store, or create it with a space for each encoder."""


def text_hash(text: str) -> str:
    """The hash that identifies a text: 128 bits of BLAKE2b, as hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class _Closes(Protocol):
    def close(self) -> None:
        """Release resources."""


@contextmanager
def closed_on_error(opened: _Closes) -> Iterator[None]:
    """Close `opened` if the block raises, since the caller never receives it to close it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
