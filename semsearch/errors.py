"""Every error that semsearch raises on purpose, as one tree.

    SemsearchError                  catch this one to catch them all
    ├── ArgumentError               a value that a caller passed cannot be used (k of 0)
    ├── CorpusError                 a corpus cannot be read at all
    │   └── BadRowError             one row of it cannot be used; reading can go on behind it
    │       ├── UndecodableError    it holds a byte that is not of the file's encoding
    │       └── BadFileError        it is a whole document of several parts
    ├── DatasetError                a data set cannot be read or fetched
    │   └── DatasetNotFoundError    it is not on this machine
    ├── FilterError                 a `where` expression cannot be parsed, or names an unknown field
    ├── EncoderError                an encoder cannot be loaded or used
    │   ├── ModelNotFoundError      its files are neither here nor to be had from the hub
    │   ├── NoVectorError           it returns no unit vector for a text
    │   └── UnsafeModelError        its files would have to be trusted with running code
    ├── IndexStoreError             an index directory cannot be used
    │   ├── IndexNotFoundError      there is none
    │   ├── IndexFormatError        it is something else, damaged, or of a newer format
    │   ├── IndexBusyError          another process is writing it
    │   │   └── IndexChangedError   it was written while it was read without locks
    │   ├── IndexClosedError        it was closed before it was used
    │   ├── SpaceError              the embedding space is unknown or belongs to another model
    │   └── RemovalError            more documents would be removed than was allowed
    ├── ClusterError                a Ray cluster cannot be used
    ├── TrainingError               a model cannot be trained: it diverged, or others train it
    │   └── TrainingStoppedError    it was interrupted and can go on
    └── MissingExtraError           an optional dependency is not installed

The message of each is one line that a user can act on; the command line prints it as it is.
"""

from __future__ import annotations

#: How much is said at once; what is quoted may be longer.
MESSAGE_MAX_CHARACTERS = 2_000


class SemsearchError(Exception):
    """Root of the tree."""

    def __str__(self) -> str:
        """Its message: one printable line, whatever the texts that it quotes hold."""
        message = super().__str__()[: MESSAGE_MAX_CHARACTERS + 1]
        line = "".join(letter if letter.isprintable() else " " for letter in message)
        return line if len(line) <= MESSAGE_MAX_CHARACTERS else f"{line[:-1]}…"


class ArgumentError(SemsearchError, ValueError):
    """A value that a caller passed cannot be used."""


class CorpusError(SemsearchError):
    """A corpus cannot be read at all: no such file, no text column, not the format it claims."""


class BadRowError(CorpusError):
    """One row of a corpus cannot be used.

    Args:
        source: where the row stands, as a person would look it up: ``corpus.csv:418`` (a line),
            ``films.json, item 7``; empty for a document made in Python.
        reason: what is wrong with it.
        document_id: the id of the document in that row; None where it cannot be known.
    """

    def __init__(self, source: str, reason: str, document_id: str | None = None) -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source = source
        self.reason = reason
        self.document_id = document_id


class UndecodableError(BadRowError):
    """One row holds a byte that is not of the encoding that its file is read as.

    Args:
        source: where the row stands.
        what: what is wrong in it: ``text holds byte 0xe9``.
        way_out: what the byte is not, and what to do.
        document_id: the id of the document in that row; None where it cannot be known.
    """

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

    def __init__(self, source: str, reason: str, file: str) -> None:
        super().__init__(source, reason)
        self.file = file


class FilterError(SemsearchError, ValueError):
    """A `where` expression cannot be parsed, or names a field that no document has."""


class DatasetError(SemsearchError):
    """A data set cannot be read, or cannot be fetched."""


class DatasetNotFoundError(DatasetError):
    """A data set is not on this machine."""


class EncoderError(SemsearchError):
    """An encoder cannot be loaded or used."""


class ModelNotFoundError(EncoderError):
    """The files of a model are neither on this machine nor to be had from the hub."""


class NoVectorError(EncoderError):
    """An encoder returns no unit vector for some texts: NaN, zero, or not normalised.

    Args:
        spec: the encoder.
        rows: places of the texts among those that were encoded together.
    """

    def __init__(self, spec: str, rows: list[int]) -> None:
        place = f"text {rows[0] + 1} of those encoded together" if rows else "some text"
        super().__init__(
            f"encoder '{spec}' returns no unit vector (but NaN, zero or one of another length) "
            f"for {place}"
        )
        self.spec = spec
        self.rows = rows


class UnsafeModelError(EncoderError):
    """A model's files would have to be trusted with running code (custom modules, pickles)."""


class IndexStoreError(SemsearchError):
    """An index directory cannot be used."""


class IndexNotFoundError(IndexStoreError):
    """There is no index at that path."""


class IndexFormatError(IndexStoreError):
    """The directory is something else, its database is damaged, or its format is newer."""


class IndexBusyError(IndexStoreError):
    """Another process is writing the index."""


class IndexChangedError(IndexBusyError):
    """A read-only index was written while it was read; reading it again gives the new state."""


class IndexClosedError(IndexStoreError):
    """An index, a retriever or a writer was used after it had been closed."""


class SpaceError(IndexStoreError):
    """An embedding space is unknown, or its vectors come from another model."""


class RemovalError(IndexStoreError):
    """A sync or a deletion would remove more documents than was allowed; it removed none."""


class ClusterError(SemsearchError):
    """A Ray cluster cannot be reached, or none of its nodes can encode."""


class TrainingError(SemsearchError):
    """A model cannot be trained: its loss is not finite, or another process is training it."""


class TrainingStoppedError(TrainingError):
    """A training run was interrupted; its last checkpoint is written, and it can go on."""


class MissingExtraError(SemsearchError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: the distribution that is missing.
        extra: the extra of semsearch that brings it.
        purpose: what it was wanted for.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'semsearch[{extra}]'")


def refuse(error: BadRowError) -> None:
    """The default for bad rows: raise the error."""
    raise error


def first_line(error: BaseException) -> str:
    """The first line of what a library says, or what kind of error it is where it says nothing."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
