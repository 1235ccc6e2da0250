"""Every error that semsearch raises on purpose, as one tree.

    SemsearchError                      catch this one to catch them all
    ├── ArgumentError                   a value that a caller passed cannot be used (k of 0)
    │   ├── CombinationError            arguments exclude each other, or one is missing
    │   ├── OutputError                 what is to be written exists already, or cannot be written
    │   ├── DocumentNotFoundError       the index has no document of that id
    │   ├── QueryError                  it cannot be searched for: too long, no words, no direction
    │   ├── ExamplesError               examples cannot be learned from, or not be measured by
    │   ├── ResumeError                 a training run cannot go on like this
    │   └── ServeError                  a service cannot be started or stopped
    ├── FilterError                     a `where` expression cannot be used
    │   └── FieldNotFoundError          no document has such a field (an ArgumentError, too)
    ├── CorpusError                     a corpus cannot be read at all
    │   ├── CorpusNotFoundError         there is no such file
    │   ├── EmptyCorpusError            it holds no documents
    │   ├── UnknownFormatError          its format is none that can be read, or another one
    │   ├── CorpusTooLargeError         it is beyond a limit
    │   ├── CorpusDatabaseError         a database cannot be opened or queried
    │   ├── ColumnNotFoundError         a table lacks a column (a DatasetError, too)
    │   ├── DownloadError               a file cannot be downloaded (a DatasetError, too)
    │   └── BadRowError                 one row of it cannot be used; reading can go on behind it
    │       ├── DuplicateIdError        its id is that of an earlier row
    │       ├── UndecodableError        it holds a byte that is not of the file's encoding
    │       └── BadFileError            it is a whole document of several parts
    ├── DatasetError                    a data set cannot be read
    │   └── DatasetNotFoundError        it is not on this machine
    ├── EncoderError                    an encoder cannot be loaded or used
    │   ├── ModelNotFoundError          its files are neither here nor available from the hub
    │   ├── DamagedModelError           its files are damaged or not whole
    │   ├── PrecisionError              it cannot compute in these numbers here
    │   ├── NoVectorError               it returns no unit vector for a text
    │   └── UnsafeModelError            its files would have to be trusted with running code
    ├── IndexStoreError                 an index cannot be used
    │   ├── IndexNotFoundError          there is none
    │   ├── IndexFormatError            it is something else
    │   │   ├── DamagedIndexError       it is damaged
    │   │   └── IndexVersionError       it is of another version's format
    │   ├── IndexBusyError              another process is writing it
    │   │   └── IndexChangedError       it was written while it was read without locks
    │   ├── IndexClosedError            it was closed before it was used
    │   ├── StoreUnreachableError       the server that keeps it does not answer
    │   ├── UnsupportedByStoreError     its store has no such function (an ArgumentError, too)
    │   ├── SpaceError                  vectors of an embedding space are lacking or another model's
    │   │   └── SpaceNotFoundError      it has no such embedding space
    │   └── RemovalError                more documents would be removed than was allowed
    ├── ClusterError                    a Ray cluster cannot be used
    ├── TrainingError                   a model cannot be trained: it diverged, or others train it
    │   └── TrainingStoppedError        it was interrupted and can go on
    └── MissingExtraError               an optional dependency is not installed

The message of each is one line that a user can act on; the command line prints it with the error's
`code`, and ``semsearch explain CODE`` prints a page about it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for the one of typing, which takes long to import
if TYPE_CHECKING:
    from typing import ClassVar

#: The longest message; what is quoted may be longer.
MESSAGE_MAX_CHARACTERS = 2_000


class SemsearchError(Exception):
    """Root of the tree."""

    #: The kind of error, a name that stays the same; ``semsearch explain CODE`` prints its page.
    code: ClassVar[str] = ""

    def __str__(self) -> str:
        """Its message: one printable line, whatever the texts that it quotes hold."""
        message = super().__str__()[: MESSAGE_MAX_CHARACTERS + 1]
        line = "".join(letter if letter.isprintable() else " " for letter in message)
        return line if len(line) <= MESSAGE_MAX_CHARACTERS else f"{line[:-1]}…"


class ArgumentError(SemsearchError, ValueError):
    """A value that a caller passed cannot be used."""

    code = "invalid-argument"


class CombinationError(ArgumentError):
    """Arguments exclude each other, or one is missing that another needs."""

    code = "argument-combination"


class OutputError(ArgumentError):
    """A file or folder to write into exists already, or cannot be written."""

    code = "unusable-output"


class DocumentNotFoundError(ArgumentError):
    """An index has no document of that id."""

    code = "document-not-found"


class QueryError(ArgumentError):
    """A query cannot be searched for: it is too long, or has neither words nor direction."""

    code = "unusable-query"


class ExamplesError(ArgumentError):
    """Labelled examples are too few, all alike, or of a kind that does not fit."""

    code = "unusable-examples"


class ResumeError(ArgumentError):
    """A training run cannot be resumed: there is none, or it began with other settings."""

    code = "not-resumable"


class ServeError(ArgumentError):
    """A service cannot be started or stopped."""

    code = "cannot-serve"


class CorpusError(SemsearchError):
    """A corpus cannot be read at all."""

    code = "unreadable-corpus"


class CorpusNotFoundError(CorpusError):
    """There is no such file."""

    code = "corpus-not-found"


class EmptyCorpusError(CorpusError):
    """A corpus holds no documents."""

    code = "empty-corpus"


class UnknownFormatError(CorpusError):
    """A file is in no format that can be read, or in another one than it is read as."""

    code = "unknown-format"


class CorpusTooLargeError(CorpusError):
    """A file is beyond a limit on size, numbers or time."""

    code = "corpus-too-large"


class CorpusDatabaseError(CorpusError):
    """A database cannot be opened, or returns no rows for a query."""

    code = "database-failed"


class BadRowError(CorpusError):
    """One row of a corpus cannot be used.

    Args:
        source: where the row stands, as a person would look it up: ``corpus.csv:418`` (a line),
            ``films.json, item 7``; empty for a document made in Python.
        reason: what is wrong with it.
        document_id: the id of the document in that row; None where it cannot be known.
    """

    code = "bad-row"

    def __init__(self, source: str, reason: str, document_id: str | None = None) -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source = source
        self.reason = reason
        self.document_id = document_id

    def add_way_out(self, way_out: str) -> None:
        """Add to its message what can be done."""
        self.reason = f"{self.reason}; {way_out}"
        self.args = (f"{self.args[0]}; {way_out}",)


class DuplicateIdError(BadRowError):
    """The id of a row is that of an earlier one."""

    code = "duplicate-id"


class UndecodableError(BadRowError):
    """One row holds a byte that is not of the encoding that its file is read as.

    Args:
        source: where the row stands.
        what: what is wrong in it: ``text holds byte 0xe9``.
        way_out: what the byte is not, and what to do.
        document_id: the id of the document in that row; None where it cannot be known.
    """

    code = "undecodable-text"

    def __init__(
        self,
        source: str,
        what: str,
        way_out: str = "not of this encoding; name its encoding with --encoding",
        document_id: str | None = None,
    ) -> None:
        super().__init__(source, f"{what}, which is {way_out}", document_id)
        self.what = what


class BadFileError(BadRowError):
    """A document of several parts (a PDF, a book) cannot be used, or not to its end.

    Args:
        source: where it stands.
        reason: what is wrong with it.
        file: what the document is called; its parts are called ``FILE#page=3`` and the like.
    """

    code = "bad-file"

    def __init__(self, source: str, reason: str, file: str) -> None:
        super().__init__(source, reason)
        self.file = file


class FilterError(SemsearchError, ValueError):
    """A `where` expression cannot be parsed, or does not suit the fields."""

    code = "invalid-filter"


class FieldNotFoundError(ArgumentError, FilterError):
    """No document of an index has a field of that name."""

    code = "field-not-found"


class DatasetError(SemsearchError):
    """A data set cannot be read."""

    code = "unusable-dataset"


class ColumnNotFoundError(CorpusError, DatasetError):
    """A table lacks a column that was named, or that is needed."""

    code = "column-not-found"


class DownloadError(CorpusError, DatasetError):
    """A file cannot be downloaded, or is not the expected one."""

    code = "download-failed"


class DatasetNotFoundError(DatasetError):
    """A data set is not on this machine."""

    code = "dataset-not-found"


class EncoderError(SemsearchError):
    """An encoder cannot be loaded or used."""

    code = "unusable-model"


class ModelNotFoundError(EncoderError):
    """The files of a model are neither on this machine nor available from the hub."""

    code = "model-not-found"


class DamagedModelError(EncoderError):
    """A model's files are damaged, not whole, or not what they should be."""

    code = "damaged-model"


class PrecisionError(EncoderError):
    """A model cannot compute in these numbers, or not on this processor."""

    code = "unsupported-precision"


class NoVectorError(EncoderError):
    """An encoder returns no unit vector for some texts: NaN, zero, or not normalised.

    Args:
        spec: the encoder.
        rows: places of the texts among those that were encoded together.
        message: its message; None names the first of these texts by its place.
    """

    code = "no-vector"

    def __init__(self, spec: str, rows: list[int], message: str | None = None) -> None:
        place = f"text {rows[0] + 1} of those encoded together" if rows else "some text"
        super().__init__(
            message
            or f"encoder '{spec}' returns no unit vector (but NaN, zero or one of another length) "
            f"for {place}"
        )
        self.spec = spec
        self.rows = rows


class UnsafeModelError(EncoderError):
    """A model's files would have to be trusted with running code (custom modules, pickles)."""

    code = "unsafe-model"


class IndexStoreError(SemsearchError):
    """An index directory cannot be used."""

    code = "unusable-index"


class IndexNotFoundError(IndexStoreError):
    """There is no index at that path."""

    code = "index-not-found"


class IndexFormatError(IndexStoreError):
    """What is there is no index, or none that this version can read."""

    code = "not-an-index"


class DamagedIndexError(IndexFormatError):
    """An index is damaged."""

    code = "damaged-index"


class IndexVersionError(IndexFormatError):
    """An index is of a newer version's format, or of an older one that must not be changed."""

    code = "index-version"


class IndexBusyError(IndexStoreError):
    """Another process is writing the index."""

    code = "index-busy"


class IndexChangedError(IndexBusyError):
    """A read-only index was written while it was read; reading it again gives the new state."""

    code = "index-changed"


class IndexClosedError(IndexStoreError):
    """An index, a retriever or a writer was used after it had been closed."""

    code = "index-closed"


class StoreUnreachableError(IndexStoreError):
    """The server that keeps an index does not answer, or refuses access."""

    code = "store-unreachable"


class UnsupportedByStoreError(IndexStoreError, ArgumentError):
    """The store of an index has no such function."""

    code = "unsupported-by-store"


class SpaceError(IndexStoreError):
    """Vectors of an embedding space are lacking, or come from another model."""

    code = "unusable-space"


class SpaceNotFoundError(SpaceError):
    """An index has no embedding space of that name or encoder."""

    code = "space-not-found"


class RemovalError(IndexStoreError):
    """A sync or a deletion would remove more documents than was allowed; it removed none."""

    code = "too-many-removals"


class ClusterError(SemsearchError):
    """A Ray cluster cannot be reached, or none of its nodes can encode."""

    code = "unusable-cluster"


class TrainingError(SemsearchError):
    """A model cannot be trained: its loss is not finite, or another process is training it."""

    code = "training-failed"


class TrainingStoppedError(TrainingError):
    """A training run was interrupted; its last checkpoint is written, and it can go on."""

    code = "training-stopped"


class MissingExtraError(SemsearchError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: the distribution that is missing.
        extra: the extra of semsearch that brings it.
        purpose: what needs it.
    """

    code = "missing-extra"

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'semsearch[{extra}]'")


def refuse(error: BadRowError) -> None:
    """The default for bad rows: raise the error."""
    raise error


def with_code(error: SemsearchError) -> str:
    """The message of an error and its code: ``no index at a; … [index-not-found]``."""
    return f"{error} [{error.code}]" if error.code else str(error)


def first_line(error: BaseException) -> str:
    """The first line of a library's message or, where that is empty, the kind of error."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
