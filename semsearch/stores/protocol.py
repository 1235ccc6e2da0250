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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy import int64
from numpy.typing import NDArray

from semsearch.arguments import shown
from semsearch.encoders.specs import Precision, described_precision, unpinned
from semsearch.errors import ArgumentError, SpaceError, SpaceNotFoundError
from semsearch.protocols import Encoder, Matrix
from semsearch.records import STORED_TYPES, Chunk, Document, Metadata

if TYPE_CHECKING:
    from semsearch.analysis import Language
    from semsearch.filters import Condition, Value
    from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)


class Kind(Enum):
    """The kinds of values: JSON's types, and dates among the texts."""

    TEXT = "text"
    DATE = "date"  #: a text such as 2019-05-01 or 2019-05-01T10:00
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    LIST = "list"  #: an empty one, or one in a list
    NULL = "null"


class Field(NamedTuple):
    """A metadata field."""

    name: str
    kinds: dict[str, int]  #: documents by kind, such as ``number`` or ``list of text``
    example: Value | None = None  #: a value, or an element of a list, of the most frequent kind


NAME_MAX_CHARACTERS = 64


class Space(NamedTuple):
    """What an index knows of the encoder that made a set of its vectors."""

    id: int
    name: str
    spec: str
    fingerprint: str
    dimension: int
    dtype: str
    complete: bool  # False while chunks from before it still lack their vectors
    description: dict[str, Any]

    @property
    def precision(self) -> Precision:
        """How its encoder is to be loaded; the int8 of a space is its documents' own."""
        return described_precision(self.description)

    def check(self, encoder: Encoder, index: Path) -> None:
        """Refuse an encoder whose vectors mean something else.

        Args:
            encoder: what the space's spec names now.
            index: the directory.

        Raises:
            SpaceError: its fingerprint is not the space's.
        """
        if encoder.fingerprint != self.fingerprint:
            raise SpaceError(
                f"space '{self.name}' was made by another model than '{encoder.spec}' is now, or "
                "by a version of semsearch that looked at fewer of its files (fingerprint "
                f"{self.fingerprint[:12]} there, {encoder.fingerprint[:12]} here); use the model "
                f"it was made with, or encode the passages again: semsearch index --add-space "
                f"{encoder.spec} --index {index}, then --drop-space {self.name}"
            )

    def check_dtype(self, dtype: str | None) -> None:
        """Refuse another number type than the one that its vectors are stored in.

        Raises:
            SpaceError: it is another one.
        """
        check_stored_type(dtype)
        if dtype not in (None, self.dtype):
            raise SpaceError(
                f"space '{self.name}' stores {self.dtype}, not {dtype}; "
                "the type is chosen when a space is made"
            )


def warn_of_cut_passages(encoder: Encoder, max_tokens: int) -> None:
    """Warn of an encoder that reads less than the passages of an index may hold."""
    if encoder.max_document_tokens < max_tokens:
        logger.warning(
            "%s reads %d tokens; passages here have up to %d, whose ends it will not see",
            encoder.spec,
            encoder.max_document_tokens,
            max_tokens,
        )


def check_stored_type(dtype: str | None) -> None:
    """Refuse a number type that no space can have.

    Raises:
        ArgumentError: it is neither one of `STORED_TYPES` nor None, which leaves the choice.
    """
    if dtype is not None and dtype not in STORED_TYPES:
        choices = " or ".join(f"'{name}'" for name in STORED_TYPES)
        raise ArgumentError(f"dtype must be {choices}, not {shown(dtype)}")


def free_name(spec: str, taken: Collection[str]) -> str:
    """A short name that is safe in a file name: `sentence-transformers/all-X` → `all-x`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", PurePath(unpinned(spec)).name.lower())
    slug = slug[:NAME_MAX_CHARACTERS].strip("-") or "space"
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


def find_space(spaces: Sequence[Space], name: str | None = None) -> Space:
    """The space called `name`; without a name, the first one.

    Raises:
        SpaceError: there is none of that name.
    """
    for space in spaces:
        if name is None or space.name == name:
            return space
    names = ", ".join(space.name for space in spaces)
    raise SpaceNotFoundError(f"no space '{name}' in this index (spaces: {names})")


def check_searchable(space: Space, spaces: Sequence[Space]) -> None:
    """Refuse to answer from a space that the index no longer has, or has not in full.

    Args:
        space: as it was when it was opened.
        spaces: those that the index has now.

    Raises:
        SpaceError: it was dropped, or lacks the vectors of some passages.
    """
    for found in spaces:
        if found.id == space.id:
            if not found.complete:
                raise SpaceError(
                    f"space '{space.name}' lacks vectors of some passages; complete it with: "
                    f"semsearch index --add-space {space.spec}"
                )
            return
    raise SpaceNotFoundError(f"space '{space.name}' was dropped from the index; open another one")


class Candidate(NamedTuple):
    """A document that a search found, by its best chunk."""

    document_id: int
    chunk_id: int
    score: float


class Restriction(NamedTuple):
    """Which documents may be found."""

    condition: Condition | None = None
    required: tuple[str, ...] = ()  #: phrases that a passage of theirs has, as BM25 reads words
    excluded: tuple[str, ...] = ()  #: phrases that none has


NO_RESTRICTION = Restriction()


class FoundPassage(NamedTuple):
    """A chunk with what its document says of itself."""

    chunk: Chunk
    metadata: Metadata
    title: str | None


class Passages(NamedTuple):
    """Passages as columns, in the order in which they were added."""

    document_ids: list[str]  #: what the corpus calls their documents
    documents: NDArray[int64]  #: the same as numbers
    chunk_ids: NDArray[int64]
    texts: list[str]
    vectors: Matrix


class StoredDocument(NamedTuple):
    """What a store says of a document, to see whether another text of that id changes it."""

    document_id: int
    title: str | None
    metadata: str  #: JSON
    text_hash: str
    whole: bool = True  #: whether the store can give back the text as it was


class Seen(NamedTuple):
    """A document that the present run has read."""

    source: str
    repeats: int  #: later documents named by the same content


class NewPassage(NamedTuple):
    """A passage to be stored: the characters [start, end) of its document."""

    start: int
    end: int
    text: str
    text_hash: str


class NewDocument(NamedTuple):
    """A document to be stored, or one of which all but the passages is to be renewed."""

    id: str
    text: str
    title: str | None
    metadata: str  #: JSON
    text_hash: str
    passages: Sequence[NewPassage] | None  #: None leaves those that the store has


class Selection(NamedTuple):
    """Documents: those that meet all that is given."""

    ids: Sequence[str] | None = None
    condition: Condition | None = None
    unseen: bool = False  #: those that the present run has not read


EVERYTHING = Selection()

#: Vectors by space id and `text_hash`, each of shape (dimension,), as they are stored.
TextVectors = dict[tuple[int, str], Matrix]


class SnapshotInfo(NamedTuple):
    """A file of a space's vectors."""

    file: str
    kind: str
    vectors: int
    recall: float  #: of the 10 nearest, against exact search; 1 for an exact kind


class StoreInfo(NamedTuple):
    """What a store holds."""

    format: int
    documents: int
    chunks: int
    fields: list[Field]
    spaces: list[Space]
    snapshots: dict[str, SnapshotInfo]  #: by the name of their space
    files: dict[str, int]  #: name → bytes
    language: Language | None  #: whose stems BM25 uses; None for Porter's of English
    indexed_fields: list[str]  #: by which filters find documents, sorted
    has_words: bool = True  #: whether it can be searched by BM25


class Fault(NamedTuple):
    """Something in a store that is not as it should be."""

    what: str
    repairable: bool = True  #: from what else the store holds

    @property
    def remedy(self) -> str:
        """The command that repairs it."""
        if self.repairable:
            return "semsearch verify --repair"
        return "semsearch index CORPUS --index NEW-DIRECTORY"


class StoreState(Protocol):
    """One committed state of a store."""

    @property
    def max_tokens(self) -> int:
        """How many tokens a passage may have."""

    @property
    def index_type(self) -> IndexType:
        """How vectors are to be searched."""

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""

    def info(self) -> StoreInfo:
        """What the store holds."""

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """How many documents there are, or are selected."""

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of the documents, or of those selected, in the order of their coming."""

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents of these ids, as they were added."""

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of their coming.

        Args:
            last: the number of the last one before them; 0 for the beginning.
            limit: how many.
        """

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """What the store has of the documents of these ids."""

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, by the documents' ids, in their order."""

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The sound vectors that the store has for texts, under whatever document."""

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents meet a condition."""

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""

    # Search.

    def prepare(self, space: Space) -> None:
        """Load what searching a space needs, ahead of the search."""

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
            space: in which space.
            queries: unit vectors, float32, shape (m, dimension).
            k: how many.
            restriction: what documents have to meet.
            per_document: how many passages of a document may be among them.

        Raises:
            SpaceError: the space was dropped, or lacks the vectors of some passages.
            IndexChangedError: the state is gone; the store has to be read again.
        """

    def plan(self, space: Space, k: int, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[Candidate]:
        """The `k` best passages by BM25 over their words, best first.

        The words are those of `text` and the phrases that are required.
        """

    def matched_words(
        self, text: str, phrases: Sequence[str], chunk_ids: Sequence[int]
    ) -> dict[int, list[str]]:
        """The words of chunks, as BM25 reads them, that a text or phrases have too."""

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids.

        Args:
            chunk_ids: which.
            missing_ok: leave out those that are no more; without it, they are damage.
        """

    # Metadata fields, to check filters and explain those that match nothing.

    def check(self, condition: Condition) -> None:
        """Refuse a condition that the store cannot run.

        Raises:
            FilterError: it is too deep or too long.
        """

    def field_names(self) -> list[str]:
        """The names of the metadata fields that documents have, sorted."""

    def kinds_of(self, names: Iterable[str]) -> dict[str, set[Kind]]:
        """The kinds of values of the known ones of these metadata fields."""

    def example(self, field: str, kinds: Iterable[Kind]) -> Value | None:
        """A value of one of these kinds that a field, as conditions call it, holds."""

    def matches(self, condition: Condition) -> bool:
        """Whether any document meets a condition."""

    def neighbours(self, field: str, value: Value) -> list[Value]:
        """The nearest values of a field on either side of one of the same kind."""

    def texts_of(self, field: str, max_characters: int) -> list[str]:
        """Different texts that a field holds, of a sample."""

    # The present run over a corpus, which can have more ids than fit in memory.

    def begin_run(self) -> None:
        """Forget which documents have been seen."""

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """The ones of these that the run has seen."""

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Remember that documents have been seen."""


class StoreWriter(Protocol):
    """The right to write a store. Each method that changes it is one transaction."""

    def state(self) -> AbstractContextManager[StoreState]:
        """The present state, which nobody changes until the block ends."""

    def put(self, documents: Sequence[NewDocument], vectors: TextVectors) -> None:
        """Add documents, or renew those of the same ids."""

    def remove(self, selection: Selection) -> int:
        """Remove documents; returns how many."""

    def add_space(self, encoder: Encoder, dtype: str | None) -> Space:
        """A new space, which is incomplete."""

    def drop_space(self, space: Space) -> None:
        """Remove a space with its vectors."""

    def put_vectors(self, space: Space, chunk_ids: Sequence[int], vectors: Matrix) -> None:
        """Add the vectors of passages that lacked them."""

    def mark_complete(self, space: Space) -> None:
        """Let a space be searched: each passage has its vector."""

    def choose_index_type(self, wanted: IndexType) -> None:
        """Ask for a kind of vector index, which `optimise` will build."""

    def index_field(self, name: str) -> None:
        """Let filters find documents by the values of a metadata field."""

    def set_language(self, language: Language) -> None:
        """Let BM25 stem words, and leave out stop words, as a language does."""

    def optimise(self, *, thoroughly: bool = False) -> None:
        """Bring what makes search fast up to date, where that is worth it.

        Args:
            thoroughly: whether a single change is reason enough.
        """

    def compact(self) -> None:
        """Rewrite all files without what was deleted.

        Raises:
            IndexBusyError: another process reads an older state.
        """

    def verify(self) -> list[Fault]:
        """All that is wrong with the store."""

    def repair(self) -> None:
        """Rebuild what can be derived; remove damaged vectors.

        Spaces are incomplete afterwards, until `put_vectors` has filled and `mark_complete` has
        opened them.
        """


class Store(Protocol):
    """Documents with passages and vectors, wherever they are kept."""

    @property
    def path(self) -> Path:
        """Where it is."""

    def read(self) -> AbstractContextManager[StoreState]:
        """One committed state, the same until the block ends.

        Raises:
            IndexChangedError: the state could not be kept; what was read is to be discarded.
        """

    def writer(self, *, wait: bool = False) -> AbstractContextManager[StoreWriter]:
        """The right to write; one process at a time has it.

        Args:
            wait: whether to wait for another process that is writing.

        Raises:
            IndexBusyError: another process is writing, and `wait` is not set.
        """

    def close(self) -> None:
        """Release its files or connections."""


class StoreModule(Protocol):
    """What the package of a store offers."""

    def open_store(
        self, path: Path, *, accept_copy: bool = False, may_migrate: bool = True
    ) -> Store:
        """The store at a place.

        Args:
            path: where it is.
            accept_copy: open it even if it may be inconsistent, to verify it.
            may_migrate: bring a store of an older format to the present one.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: something else is there, or a newer format.
        """

    def create_store(
        self, path: Path, max_tokens: int, encoders: Sequence[Encoder], dtype: str | None = None
    ) -> Store:
        """The store at a place, created if there is none, with a space for each encoder."""


def text_hash(text: str) -> str:
    """What texts are recognised by: 128 bits of BLAKE2b, as hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def rest_of(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The characters of a text outside these ranges, which are in order."""
    parts, place = [], 0
    for start, end in spans:
        parts.append(text[place:start])
        place = end
    return "".join([*parts, text[place:]])


def joined(passages: Sequence[tuple[int, int, str]], rest: str) -> str:
    """The text that these passages and the characters outside them are of."""
    parts: list[str] = []
    place = used = 0
    for start, end, text in passages:
        gap = start - place
        parts += (rest[used : used + gap], text)
        place, used = end, used + gap
    return "".join([*parts, rest[used:]])


class _Closes(Protocol):
    def close(self) -> None:
        """Release resources."""


@contextmanager
def closed_on_error(opened: _Closes) -> Iterator[None]:
    """Close `opened` if the block raises: its caller never gets it and cannot close it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
