"""Every error that semsearch raises on purpose, as one tree.

    SemsearchError                      catch this one to catch them all
    ├── ArgumentError                   an argument is invalid (k of 0)
    │   ├── ArgumentError            arguments conflict, or one is missing
    │   ├── ArgumentError                 an output file exists already, or cannot be written
    │   ├── DocumentNotFoundError       the index has no document with this id
    │   ├── ArgumentError                  a query is too long, or has no direction
    │   ├── ArgumentError               examples are unsuitable for training or evaluation
    │   ├── ArgumentError                 a training run cannot be started or resumed as requested
    │   └── ArgumentError                  a service cannot be started or stopped
    ├── FilterError                     a `where` expression is invalid
    │   └── FilterError          no document has such a field (also an ArgumentError)
    ├── CorpusError                     a corpus cannot be read at all
    │   ├── CorpusError         there is no such file
    │   ├── CorpusError            it contains no documents
    │   ├── CorpusError          its format is unsupported, or not the one it is read as
    │   ├── CorpusError         it exceeds a limit
    │   ├── CorpusError         a database cannot be opened or queried
    │   ├── ColumnNotFoundError         a table lacks a column (also a DatasetError)
    │   ├── DownloadError               a file cannot be downloaded (also a DatasetError)
    │   └── BadRowError                 one row cannot be used; reading can continue after it
    │       ├── DuplicateIdError        its id is that of an earlier row
    │       ├── UndecodableError        it contains a byte that is invalid in the file's encoding
    │       └── BadFileError            it is a whole document of several parts
    ├── DatasetError                    a data set cannot be read
    │   └── DatasetNotFoundError        it is not on this machine
    ├── EncoderError                    an encoder cannot be loaded or used
    │   ├── ModelNotFoundError          its files are neither on this machine nor on the hub
    │   ├── EncoderError           its files are damaged or incomplete
    │   ├── EncoderError              it does not support a precision, or the processor does not
    │   ├── NoVectorError               it returns no unit vector for a text
    │   └── UnsafeModelError            loading its files could run code
    ├── IndexStoreError                 an index cannot be used
    │   ├── IndexNotFoundError          there is none
    │   ├── IndexFormatError            it is not an index, or not a readable one
    │   │   ├── DamagedIndexError       it is damaged
    │   │   └── IndexFormatError       its format is that of another version
    │   ├── IndexBusyError              another process is writing it
    │   │   └── IndexBusyError       it was replaced, or written without locks, while read
    │   ├── IndexClosedError            it was used after it was closed
    │   ├── StoreUnreachableError       its server does not respond
    │   ├── UnsupportedByStoreError     its store lacks a function (also an ArgumentError)
    │   ├── SpaceError                  an embedding space lacks vectors, or is of another model
    │   │   └── SpaceError      it has no such embedding space
    │   └── RemovalError                more documents would be removed than allowed
    ├── ClusterError                    a Ray cluster cannot be used
    ├── TrainingError                   training failed: it diverged, or another process is training
    │   └── TrainingStoppedError        it was interrupted and can be resumed
    └── MissingExtraError               an optional dependency is not installed

Each message is one line that a user can act on; the command line prints it with the error's `code`,
about which docs/errors has a page.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # read as typing.TYPE_CHECKING by type checkers; typing imports slowly
if TYPE_CHECKING:
    from typing import ClassVar

#: The maximum length of a message; longer ones, which quote long texts, are truncated.
MESSAGE_MAX_CHARACTERS = 2_000


class SemsearchError(Exception):
    """Base class of all errors."""

    #: The stable name of this kind of error; docs/errors has a page about it.
    code: ClassVar[str] = ""

    def __str__(self) -> str:
        """The message as one printable line, whatever the quoted texts contain."""
        message = super().__str__()[: MESSAGE_MAX_CHARACTERS + 1]
        line = "".join(letter if letter.isprintable() else " " for letter in message)
        return line if len(line) <= MESSAGE_MAX_CHARACTERS else f"{line[:-1]}…"

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, which would otherwise call the class with the message alone."""
        return _unpickled, (type(self), self.args), vars(self)


def _unpickled(kind: type[SemsearchError], arguments: tuple[object, ...]) -> SemsearchError:
    """An error without attributes; pickle sets them."""
    return kind.__new__(kind, *arguments)


class ArgumentError(SemsearchError, ValueError):
    """An argument is invalid."""

    code = "invalid-argument"


class ArgumentError(ArgumentError):
    """Arguments conflict, or one that another needs is missing."""

    code = "invalid-argument"


class ArgumentError(ArgumentError):
    """An output file or folder exists already, or cannot be written."""

    code = "invalid-argument"


class DocumentNotFoundError(ArgumentError):
    """An index has no document with this id."""

    code = "document-not-found"


class ArgumentError(ArgumentError):
    """A query cannot be used: it is too long, or its vector has no direction."""

    code = "invalid-argument"


class ArgumentError(ArgumentError):
    """Labelled examples are too few, all alike, or of the wrong kind."""

    code = "invalid-argument"


class ArgumentError(ArgumentError):
    """A training run cannot be resumed: there is none, or it was started with other settings."""

    code = "invalid-argument"


class ArgumentError(ArgumentError):
    """A service cannot be started or stopped."""

    code = "invalid-argument"


class CorpusError(SemsearchError):
    """A corpus cannot be read at all."""

    code = "unreadable-corpus"


class CorpusError(CorpusError):
    """There is no such file."""

    code = "unreadable-corpus"


class CorpusError(CorpusError):
    """A corpus contains no documents."""

    code = "unreadable-corpus"


class CorpusError(CorpusError):
    """The format of a file is unsupported, or not the one it is read as."""

    code = "unreadable-corpus"


class CorpusError(CorpusError):
    """A file exceeds a limit on size, counts or time."""

    code = "unreadable-corpus"


class CorpusError(CorpusError):
    """A database cannot be opened, or returns no rows for a query."""

    code = "unreadable-corpus"


class BadRowError(CorpusError):
    """One row of a corpus cannot be used.

    Args:
        source: the location of the row, such as ``corpus.csv:418`` (a line) or
            ``films.json, item 7``; empty for a document created in Python.
        reason: what is wrong with it.
        document_id: the id of the document in this row; None if unknown.
    """

    code = "bad-row"

    def __init__(self, source: str, reason: str, document_id: str | None = None) -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source = source
        self.reason = reason
        self.document_id = document_id

    def add_remedy(self, remedy: str) -> None:
        """Append a remedy to the message."""
        self.reason = f"{self.reason}; {remedy}"
        self.args = (f"{self.args[0]}; {remedy}",)


class DuplicateIdError(BadRowError):
    """The id of a row is that of an earlier one."""

    code = "duplicate-id"


class UndecodableError(BadRowError):
    """A row contains a byte that is invalid in the encoding its file is read as.

    Args:
        source: the location of the row.
        what: what is wrong with it: ``text holds byte 0xe9``.
        remedy: the encoding and the remedy: ``not UTF-8; name its encoding with --encoding``.
        document_id: the id of the document in this row; None if unknown.
    """

    code = "undecodable-text"

    def __init__(
        self,
        source: str,
        what: str,
        remedy: str = "invalid in this encoding; name the right one with --encoding",
        document_id: str | None = None,
    ) -> None:
        super().__init__(source, f"{what}, which is {remedy}", document_id)
        self.what = what


class BadFileError(BadRowError):
    """A document of several parts (a PDF, a book) cannot be read, or only in part.

    Args:
        source: its location.
        reason: what is wrong with it.
        file: the name of the document; its parts have names such as ``FILE#page=3``.
    """

    code = "bad-file"

    def __init__(self, source: str, reason: str, file: str) -> None:
        super().__init__(source, reason)
        self.file = file


class FilterError(SemsearchError, ValueError):
    """A `where` expression cannot be parsed, or does not fit the fields."""

    code = "invalid-filter"


class FilterError(ArgumentError, FilterError):
    """No document of an index has a field with this name."""

    code = "invalid-filter"


class DatasetError(SemsearchError):
    """A data set cannot be read."""

    code = "unusable-dataset"


class ColumnNotFoundError(CorpusError, DatasetError):
    """A table lacks a named or required column."""

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


class EncoderError(EncoderError):
    """A model's files are damaged, incomplete, or not what they should be."""

    code = "unusable-model"


class EncoderError(EncoderError):
    """A model or the processor does not support the requested precision."""

    code = "unusable-model"


class NoVectorError(EncoderError):
    """An encoder returns no unit vector for some texts: NaN, zero, or not normalised.

    Args:
        spec: the encoder.
        rows: the positions of these texts among those encoded together.
        message: the message; None for one with the position of the first of these texts.
    """

    code = "no-vector"

    def __init__(self, spec: str, rows: list[int], message: str | None = None) -> None:
        place = f"text {rows[0] + 1} of those encoded together" if rows else "some text"
        super().__init__(
            message
            or f"encoder '{spec}' returns no unit vector (NaN, zero or not normalised) for {place}"
        )
        self.spec = spec
        self.rows = rows


class UnsafeModelError(EncoderError):
    """Loading a model's files could run code (custom modules, pickles)."""

    code = "unsafe-model"


class IndexStoreError(SemsearchError):
    """An index directory cannot be used."""

    code = "unusable-index"


class IndexNotFoundError(IndexStoreError):
    """There is no index at that path."""

    code = "index-not-found"


class IndexFormatError(IndexStoreError):
    """A path is not an index, or not one that this version can read."""

    code = "not-an-index"


class DamagedIndexError(IndexFormatError):
    """An index is damaged."""

    code = "damaged-index"


class IndexFormatError(IndexFormatError):
    """An index has another format."""

    code = "not-an-index"


class IndexBusyError(IndexStoreError):
    """Another process, or the same thread, is writing the index.

    Args:
        message: the message.
        can_wait: whether the call would have waited for it, had it been asked to.
    """

    code = "index-busy"

    def __init__(self, message: str, *, can_wait: bool = False) -> None:
        super().__init__(message)
        self.can_wait = can_wait


class IndexBusyError(IndexBusyError):
    """An index was replaced, or a read-only one written, while it was read; read it again."""

    code = "index-busy"


class IndexClosedError(IndexStoreError):
    """An index or a writer was used after it had been closed."""

    code = "index-closed"


class StoreUnreachableError(IndexStoreError):
    """The server of an index does not respond, or refuses access."""

    code = "store-unreachable"


class UnsupportedByStoreError(IndexStoreError, ArgumentError):
    """The store of an index does not support a function."""

    code = "unsupported-by-store"


class SpaceError(IndexStoreError):
    """An embedding space lacks vectors, or they come from another model."""

    code = "unusable-space"


class SpaceError(SpaceError):
    """An index has no embedding space with this name or encoder."""

    code = "unusable-space"


class RemovalError(IndexStoreError):
    """A sync or a deletion would remove more documents than allowed; it removed none."""

    code = "too-many-removals"


class ClusterError(SemsearchError):
    """A Ray cluster cannot be reached, or none of its nodes can encode."""

    code = "unusable-cluster"


class TrainingError(SemsearchError):
    """A model cannot be trained: its loss is not finite, or another process is training it."""

    code = "training-failed"


class TrainingStoppedError(TrainingError):
    """A training run was interrupted; its last checkpoint was saved, and it can be resumed."""

    code = "training-stopped"


class MissingExtraError(SemsearchError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: the missing distribution.
        extra: the extra of semsearch that installs it.
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
    """The first line of a library's message or, if it is empty, the name of the error's class."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def quoted(text: str) -> str:
    """An argument of a command in a message, in quotes if a shell needs them."""
    if text and not set(text) & set(" \t\n\"'$`\\&|;<>()*?[]#~!"):
        return text
    # Double quotes work in any shell, but those of Unix expand some characters inside them.
    is_safe = os.name == "nt" or not set(text) & set('"$`\\!')
    if is_safe:
        return f'"{text}"'
    import shlex

    return shlex.quote(text)
