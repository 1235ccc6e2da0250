"""Errors, and checks of arguments. Catch `SemsearchError` to catch all that semsearch raises.

A message is one line that a user can act on. The command line and the services show it with the
error's `code`, which is stable while messages may change. docs/reference/errors.md lists all.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeVar

_Choice = TypeVar("_Choice", bound=Enum)

#: The maximum length of a message; longer ones, which quote long texts, are truncated.
MESSAGE_MAX_CHARACTERS = 2_000

#: The length at which values in messages are truncated.
SHOWN_MAX_CHARACTERS = 40


class SemsearchError(Exception):
    """Base class of all errors."""

    #: The stable name of this kind of error.
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


# Arguments.


class ArgumentError(SemsearchError, ValueError):
    """An argument is invalid, conflicts with another, or lacks one that it needs."""

    code = "invalid-argument"


class DocumentNotFoundError(ArgumentError):
    """An index has no document with this id."""

    code = "document-not-found"


class FilterError(ArgumentError):
    """A `where` expression cannot be parsed, or does not fit the fields of the index."""

    code = "invalid-filter"


# Corpora and data sets.


class CorpusError(SemsearchError):
    """A corpus cannot be read."""

    code = "unreadable-corpus"


class BadRowError(CorpusError):
    """One row of a corpus cannot be used; reading can continue after it.

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


class UndecodableError(BadRowError):
    """A row contains a byte that is invalid in the encoding its file is read as.

    Args:
        source: the location of the row.
        what: what is wrong with it: ``text holds byte 0xe9``.
        remedy: the encoding: ``not UTF-8; it looks like windows-1252 (--encoding windows-1252)``.
        document_id: the id of the document in this row; None if unknown.
    """

    code = "undecodable-text"

    def __init__(
        self, source: str, what: str, remedy: str = "not UTF-8", document_id: str | None = None
    ) -> None:
        super().__init__(source, f"{what}, which is {remedy}", document_id)
        self.what = what


class BadFileError(BadRowError):
    """A document of several parts (a PDF, a book) cannot be read, or only in part.

    Its parts have ids such as ``DOCUMENT_ID#page=3``.
    """

    code = "bad-file"


class DatasetError(SemsearchError):
    """A data set cannot be read."""

    code = "unusable-dataset"


class DatasetNotFoundError(DatasetError):
    """A data set is not on this machine."""

    code = "dataset-not-found"


class ColumnNotFoundError(CorpusError, DatasetError):
    """A table lacks a named or required column."""

    code = "column-not-found"


class DownloadError(CorpusError, DatasetError):
    """A file cannot be downloaded, or is not the expected one."""

    code = "download-failed"


# Models.


class EncoderError(SemsearchError):
    """An encoder or a reranker cannot be loaded or used."""

    code = "unusable-model"


class ModelNotFoundError(EncoderError):
    """The files of a model are neither on this machine nor available from the hub."""

    code = "model-not-found"


class UnsafeModelError(EncoderError):
    """Loading a model's files could run code (custom modules, pickles)."""

    code = "unsafe-model"


class NoVectorError(EncoderError):
    """An encoder returns no unit vector for some texts: NaN, zero, or not normalised.

    Args:
        message: the message.
        rows: the positions of these texts among those encoded together.
    """

    code = "no-vector"

    def __init__(self, message: str, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = rows


# Indexes.


class IndexStoreError(SemsearchError):
    """An index cannot be used."""

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


class IndexBusyError(IndexStoreError):
    """The index is being written by another process or this thread, or was written while read."""

    code = "index-busy"


class StoreUnreachableError(IndexStoreError):
    """The server of an index does not respond, or refuses access."""

    code = "store-unreachable"


class UnsupportedByStoreError(IndexStoreError, ArgumentError):
    """The store of an index does not support a function."""

    code = "unsupported-by-store"


class SpaceError(IndexStoreError):
    """There is no such embedding space, it lacks vectors, or they come from another model."""

    code = "unusable-space"


class RemovalError(IndexStoreError):
    """A sync or a deletion would remove more documents than allowed; it removed none."""

    code = "too-many-removals"


# Clusters, training, installation.


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


def raise_error(error: BadRowError) -> None:
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
    import shlex  # of messages alone

    quoted_text = shlex.quote(text)
    # Double quotes work in any shell, but those of Unix expand some characters inside them.
    is_safe = quoted_text != text and not set(text) & set('"$`\\!')
    return f'"{text}"' if is_safe else quoted_text


def quantity(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``, ``1,000 queries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


# Checks of arguments, for mistakes that would otherwise give a wrong result or an obscure error.


def shown(value: object) -> str:
    """A value for messages, shortened, with its type unless it is obvious."""
    text = repr(value)
    if len(text) > SHOWN_MAX_CHARACTERS:
        text = f"{text[:SHOWN_MAX_CHARACTERS]}…"
    is_obvious = value is None or isinstance(value, (bool, int, float, str))
    return text if is_obvious else f"{text} ({type(value).__name__})"


def check_whole_number(name: str, value: Any, least: int) -> int:
    """An integer (Python's or NumPy's) of at least `least`, or an `ArgumentError`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, not {shown(value)}") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, not {number}")
    return number


def check_number(
    name: str, value: Any, low: float = float("-inf"), high: float = float("inf")
) -> float:
    """A number from `low` to `high` and not NaN, or an `ArgumentError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not low <= number <= high:
        raise ArgumentError(f"{name} must be a number from {low:g} to {high:g}, not {shown(value)}")
    return number


def check_text(name: str, value: Any) -> str:
    """A string, or an `ArgumentError`."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, not {shown(value)}")
    return value


def check_readable(name: str, value: Any) -> str:
    """A string that is not blank and can be encoded, or an `ArgumentError`."""
    if not check_text(name, value).strip():
        raise ArgumentError(f"{name} is empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        reason = "contains a byte that is not UTF-8, or an unpaired surrogate"
        raise ArgumentError(f"{name} {reason}") from None
    return check_text(name, value)


def check_items(name: str, values: Any, what: str) -> list[Any]:
    """The items of a collection as a list; an `ArgumentError` for one string, or no collection.

    Args:
        name: the argument.
        values: its value.
        what: the items, in the plural, for the message.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list of {what}, not {shown(values)}")
    return list(values)


def check_texts(name: str, values: Any) -> list[str]:
    """A list (tuple, array, series, generator) of strings, or an `ArgumentError`."""
    listed = check_items(name, values, "strings")
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise ArgumentError(f"{name}[{place}] must be a string, not {shown(text)}")
    return listed


def check_choice(name: str, kind: type[_Choice], value: Any) -> _Choice:
    """The member of an enum, given as such or by its value, or an `ArgumentError`."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise ArgumentError(f"{name} must be one of {choices}, not {shown(value)}") from None


def check_path(name: str, value: Any) -> Path:
    """A string or a path as a path, or an `ArgumentError`."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ArgumentError(f"{name} must be a path, not {shown(value)}")
    return Path(value)
