"""Validation of arguments, in one line before any computation; addresses of indexes.

An address starts with the name of its engine and a colon: ``milvus://HOST:PORT/NAME``. Plugins add
engines, whose addresses start with ``ENGINE://``.
"""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from semsearch.errors import ArgumentError

_Choice = TypeVar("_Choice", bound=Enum)

SHOWN_MAX_CHARACTERS = 40
#: SQLite's largest number; larger ones are taken as this one.
MAX_WHOLE_NUMBER = 2**63 - 1


def shown(value: object) -> str:
    """A value for messages, shortened, with its type unless it is obvious."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    text = repr(value)
    if len(text) > SHOWN_MAX_CHARACTERS:
        text = f"{text[:SHOWN_MAX_CHARACTERS]}…"
    return text if isinstance(value, str) else f"{text} ({type(value).__name__})"


def check_whole_number(name: str, value: Any, least: int) -> int:
    """Check that a value is an integer (Python's or NumPy's, not a boolean), at least `least`.

    Raises:
        ArgumentError: it is not.
    """
    number = None
    if not isinstance(value, bool):
        with suppress(TypeError):
            number = operator.index(value)
    if number is None:
        raise ArgumentError(f"{name} must be a whole number, not {shown(value)}")
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, not {number}")
    return min(number, MAX_WHOLE_NUMBER)


def check_number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Check that a value is a number (Python's or NumPy's) from `low` to `high`.

    Raises:
        ArgumentError: it is not, or is NaN.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        limits = f" from {low:g} to {high:g}" if (low, high) != (-math.inf, math.inf) else ""
        raise ArgumentError(f"{name} must be a number{limits}, not {shown(value)}")
    return number


def check_text(name: str, value: Any) -> str:
    """Check that a value is a string.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, not {shown(value)}")
    return value


def check_items(name: str, values: Any, what: str) -> list[Any]:
    """The items of an ordered collection or a generator, as a list.

    Args:
        name: the argument.
        values: its value; strings, sets, mappings and tables are refused.
        what: the items, in the plural, for the message.

    Raises:
        ArgumentError: it is not such a collection.
    """
    if isinstance(values, str):
        raise ArgumentError(f"{name} must be a list of {what}, not one string: [{shown(values)}]")
    if (
        not isinstance(values, Iterable)
        or isinstance(values, (bytes, Mapping, set, frozenset, type))
        or getattr(values, "ndim", 1) != 1
    ):
        raise ArgumentError(f"{name} must be a list of {what}, not {shown(values)}")
    return list(values)


def check_readable(what: str, text: object) -> str:
    """Check that a text can be encoded.

    Raises:
        ArgumentError: it is not a string, is blank, or is not Unicode.
    """
    checked = check_text(what, text)
    if not checked.strip():
        raise ArgumentError(f"{what} is empty")
    _check_characters(what, checked)
    return checked


def _check_characters(what: str, text: str) -> None:
    """Refuse undecoded bytes and unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(
            f"{what} contains a byte that is not UTF-8, or an unpaired surrogate"
        ) from None


def check_texts(name: str, values: Any) -> list[str]:
    """Check that a value is a list (tuple, array, series, generator) of strings.

    Raises:
        ArgumentError: it is not, such as a single string, or contains other items.
    """
    listed = check_items(name, values, "strings")
    for place, text in enumerate(listed):
        _check_characters(f"{name}[{place}]", check_text(f"{name}[{place}]", text))
    return listed


def check_unordered(name: str, values: Any) -> list[str]:
    """`check_texts` where the order has no meaning: a set is taken, too.

    Raises:
        ArgumentError: it is neither a set nor a list of strings.
    """
    is_set = isinstance(values, (set, frozenset))
    return check_texts(name, sorted(values, key=repr) if is_set else values)


def check_pairs(name: str, values: Any) -> list[tuple[str, str]]:
    """Check that a value is a list of pairs of strings.

    Raises:
        ArgumentError: it is not.
    """
    pairs = []
    for place, pair in enumerate(check_items(name, values, "pairs of strings")):
        texts = check_texts(f"{name}[{place}]", pair)
        if len(texts) != 2:
            raise ArgumentError(f"{name}[{place}] must be a pair of strings, not {shown(pair)}")
        pairs.append((texts[0], texts[1]))
    return pairs


def check_choice(name: str, kind: type[_Choice], value: Any) -> _Choice:
    """The member of an enum, given as such or by its value.

    Raises:
        ArgumentError: there is no such member.
    """
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise ArgumentError(f"{name} must be one of {choices}, not {shown(value)}") from None


def check_path(name: str, value: Any) -> Path:
    """Check that a value is a path or an address, as a string or a Path.

    Raises:
        ArgumentError: it is not, or is invalid.
    """
    path = value
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
    if not isinstance(path, str):
        raise ArgumentError(f"{name} must be a string or a Path, not {shown(value)}")
    if not path or "\0" in path:
        raise ArgumentError(f"{name} must be a path, not {path!r}")
    return place(path)


def check_callable(name: str, value: Any) -> None:
    """Check that a value is callable.

    Raises:
        ArgumentError: it is not.
    """
    if not callable(value):
        raise ArgumentError(f"{name} must be a function, not {shown(value)}")


#: The packages of stores, by the engine of an address.
STORES = {"milvus": "semsearch.storage.milvus", "milvus-lite": "semsearch.storage.milvus"}
DIRECTORIES = "semsearch.storage.sqlite"

_ADDRESS = re.compile(rf"(({'|'.join(STORES)}):|[a-z][a-z0-9_-]*://).*", re.DOTALL)


class Address(PurePosixPath):
    """An address, which can be passed like the path of a directory, on every system.

    It has no methods that open files. Paths have no empty parts, so ``//`` becomes ``/`` in it;
    `str` restores it.
    """

    @property
    def engine(self) -> str:
        """The name of its engine."""
        return super().__str__().partition(":")[0]

    @property
    def rest(self) -> str:
        """The part after the colon: ``/HOST:PORT/NAME``."""
        return super().__str__().partition(":")[2]

    def absolute(self) -> Address:
        """The address itself, which does not depend on the working directory."""
        return self

    resolve = absolute

    def __str__(self) -> str:
        has_host = self.rest.startswith("/") and self.engine != "milvus-lite"
        slashes = "/" if has_host else "//" if self.rest.startswith("/") else ""
        return f"{self.engine}:{slashes}{self.rest}"


def place(text: str) -> Path:
    """Parse a location: an address, or a path in the file system."""
    return cast("Path", Address(text)) if _ADDRESS.fullmatch(text) else Path(text)


def store_of(path: Path) -> str:
    """The package of the store for a location.

    Raises:
        ArgumentError: no store has the engine of the address.
    """
    if not isinstance(path, Address):
        return DIRECTORIES
    if path.engine not in STORES:
        known = ", ".join(STORES)
        raise ArgumentError(f"{path}: no store is called '{path.engine}' (stores: {known})")
    return STORES[path.engine]
