"""Errors, and checks of arguments. Catch `SemsearchError` to catch all that semsearch raises.

A message is one line that a user can act on. The command line and the services show it with the
error's `code`, which is stable while messages may change. docs/reference/errors.md lists all.
"""

from __future__ import annotations

import copyreg
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

#: The lengths at which messages, and values in them, are truncated.
MESSAGE_MAX_CHARACTERS, SHOWN_MAX_CHARACTERS = 2_000, 40


class SemsearchError(Exception):
    """Base class of all errors."""

    #: The stable name of this kind of error.
    code: ClassVar[str] = ""

    def __init_subclass__(cls, code: str = "") -> None:
        cls.code = code or cls.code

    def __str__(self) -> str:
        """The message as one printable line, whatever the quoted texts contain."""
        message = super().__str__()[:MESSAGE_MAX_CHARACTERS]
        return "".join(letter if letter.isprintable() else " " for letter in message)

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle, which would otherwise call the class with the message alone."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


# Arguments.


class ArgumentError(SemsearchError, ValueError, code="invalid-argument"):
    """An argument is invalid, conflicts with another, or lacks one that it needs."""


class DocumentNotFoundError(ArgumentError, code="document-not-found"):
    """An index has no document with this id."""


class FilterError(ArgumentError, code="invalid-filter"):
    """A `where` expression cannot be parsed, or does not fit the fields of the index."""


# Corpora and data sets.


class CorpusError(SemsearchError, code="unreadable-corpus"):
    """A corpus cannot be read."""


class BadRowError(CorpusError, code="bad-row"):
    """One row of a corpus cannot be used; reading can continue after it.

    ``source`` is the location of the row, such as ``corpus.csv:418`` (a line) or
    ``films.json, item 7``, and empty for a document created in Python; ``document_id`` is None if
    unknown.
    """

    def __init__(self, source: str, reason: str, document_id: str | None = None) -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source = source
        self.reason = reason
        self.document_id = document_id


class BadFileError(BadRowError, code="bad-file"):
    """A document of several parts (a PDF, a book) cannot be read, or only in part.

    Its parts have ids such as ``DOCUMENT_ID#page=3``.
    """


class DatasetError(SemsearchError, code="unusable-dataset"):
    """A data set cannot be read."""


class DatasetNotFoundError(DatasetError, code="dataset-not-found"):
    """A data set is not on this machine."""


class ColumnNotFoundError(CorpusError, DatasetError, code="column-not-found"):
    """A table lacks a named or required column."""


class DownloadError(CorpusError, DatasetError, code="download-failed"):
    """A file cannot be downloaded, or is not the expected one."""


# Models.


class EncoderError(SemsearchError, code="unusable-model"):
    """An encoder or a reranker cannot be loaded or used."""


class ModelNotFoundError(EncoderError, code="model-not-found"):
    """The files of a model are neither on this machine nor available from the hub."""


class UnsafeModelError(EncoderError, code="unsafe-model"):
    """Loading a model's files could run code (custom modules, pickles)."""


class NoVectorError(EncoderError, code="no-vector"):
    """An encoder returns no unit vector for some texts: NaN, zero, or not normalised.

    ``rows`` are the positions of these texts among those encoded together.
    """

    def __init__(self, message: str, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = rows


# Indexes.


class IndexStoreError(SemsearchError, code="unusable-index"):
    """An index cannot be used, such as one whose server cannot be reached."""


class IndexNotFoundError(IndexStoreError, code="index-not-found"):
    """There is no index at that path."""


class IndexFormatError(IndexStoreError, code="not-an-index"):
    """A path is not an index, or not one that this version can read."""


class DamagedIndexError(IndexFormatError, code="damaged-index"):
    """An index is damaged."""


class IndexBusyError(IndexStoreError, code="index-busy"):
    """The index is being written by another process or this thread, or was written while read."""


class SpaceError(IndexStoreError, code="unusable-space"):
    """There is no such embedding space, it lacks vectors, or they come from another model."""


class RemovalError(IndexStoreError, code="too-many-removals"):
    """A sync or a deletion would remove more documents than allowed; it removed none."""


# Clusters, training, installation.


class ClusterError(SemsearchError, code="unusable-cluster"):
    """A Ray cluster cannot be reached, or none of its nodes can encode."""


class TrainingError(SemsearchError, code="training-failed"):
    """A model cannot be trained: its loss is not finite, or another process is training it."""


class TrainingStoppedError(TrainingError, code="training-stopped"):
    """A training run was interrupted; its last checkpoint was saved, and it can be resumed."""


class MissingExtraError(SemsearchError, ImportError, code="missing-extra"):
    """An optional dependency is not installed: a package, which an extra of semsearch installs."""

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


#: An argument of a command in a message, in quotes if a shell needs them.
quoted = shlex.quote


def quantity(count: int, noun: str) -> str:
    """``1 page``, ``2 pages``, ``1,000 queries``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def shown(value: object) -> str:
    """A value for messages, shortened, with its type unless it is obvious."""
    text = repr(value)
    if len(text) > SHOWN_MAX_CHARACTERS:
        text = f"{text[:SHOWN_MAX_CHARACTERS]}…"
    is_obvious = value is None or isinstance(value, (bool, int, float, str))
    return text if is_obvious else f"{text} ({type(value).__name__})"


# Checks of arguments, for mistakes that would otherwise give a wrong result or an obscure error.


def check_number(
    name: str, value: Any, low: float = float("-inf"), high: float = float("inf")
) -> float:
    """A number from `low` to `high` and not NaN, or an `ArgumentError`."""
    if not low <= value <= high:
        raise ArgumentError(f"{name} must be from {low:g} to {high:g}, not {shown(value)}")
    return float(value)


def check_text(name: str, value: Any) -> str:
    """A string, or an `ArgumentError`."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, not {shown(value)}")
    return value


def check_items(name: str, values: Any, what: str) -> list[Any]:
    """The items of a collection, such as strings (`what`); an `ArgumentError` for one string."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} must be a list of {what}, not {shown(values)}")
    return list(values)


def check_texts(name: str, values: Any) -> list[str]:
    """A list (tuple, array, series, generator) of strings, or an `ArgumentError`."""
    listed = check_items(name, values, "strings")
    return [check_text(f"{name}[{place}]", text) for place, text in enumerate(listed)]


def check_path(name: str, value: Any) -> Path:
    """A string or a path as a path, or an `ArgumentError`."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ArgumentError(f"{name} must be a path, not {shown(value)}")
    return Path(value)
