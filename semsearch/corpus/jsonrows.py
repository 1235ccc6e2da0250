"""Reads JSON lines, and streams JSON arrays of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from semsearch.corpus.limits import MAX_ROW_BYTES, size_shown
from semsearch.corpus.roles import shortened
from semsearch.corpus.table import Row, Table, look_ahead
from semsearch.errors import (
    BadRowError,
    CorpusError,
    CorpusTooLargeError,
    EmptyCorpusError,
    UnknownFormatError,
)

if TYPE_CHECKING:
    from semsearch.corpus.textstream import TextStream

_BLOCK_CHARACTERS = 64 << 10
_BLANK = re.compile(r"[ \t\n\r]*")
_KEYS_SHOWN = 8
_TOO_DEEP = "its lists and objects are nested too deeply"


def read_json_lines(text: TextStream) -> Table:
    """The table of a file with one JSON object per line.

    Raises:
        CorpusError: it has no rows, or none of the first rows can be used.
    """
    return _table(text, _line_rows(text))


def read_json_array(text: TextStream) -> Table:
    """The table of a file that is one JSON array of objects.

    Raises:
        CorpusError: it has no rows, or none of the first rows can be used; raised later if the
            array is damaged.
    """
    return _table(text, _array_rows(text))


def read_records(text: TextStream, path: str) -> Table:
    """The table of the records inside a JSON value: an array or an object of objects.

    The keys of records in an object become a column `key`.

    Args:
        text: the file.
        path: the keys that lead to them, joined by dots (``data.articles``); ``.`` if the whole
            value contains them.

    Raises:
        CorpusError: the path does not exist, has no rows, or the file is not JSON.
    """
    return _table(text, _record_rows(text, [key for key in path.split(".") if key]))


def _table(text: TextStream, rows: Iterator[Row | BadRowError]) -> Table:
    head = look_ahead(rows, lambda: text.position)
    if not head:
        raise EmptyCorpusError(f"{text.name} has no rows")
    good = [row for row in head if isinstance(row, Row)]
    if not good and isinstance(head[0], BadRowError):
        raise CorpusError(str(head[0]))
    columns = dict.fromkeys(name for row in good for name in row.fields)
    return Table(text.name, tuple(columns), chain(head, rows), sample=good)


def _line_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    for number, line in enumerate(text.lines(), start=1):
        row = line.strip()
        if not row:
            continue
        source = f"{text.name}:{number}"
        try:
            yield _row(source, json.loads(row))
        except RecursionError:
            yield BadRowError(source, _TOO_DEEP)
        except ValueError as error:
            yield BadRowError(source, _reason(error))


def _record_rows(text: TextStream, path: list[str]) -> Iterator[Row | BadRowError]:
    scanner = _Scanner(text)
    for depth, wanted in enumerate(path):
        found: list[str] = []
        for key in scanner.keys(".".join((text.name, *path[:depth]))):
            if key == wanted:
                break
            if len(found) <= _KEYS_SHOWN:
                found.append(shortened(key))
            scanner.checked(f"{text.name}, {key!r}")
        else:
            keys = ", ".join(found[:_KEYS_SHOWN]) + (", …" if len(found) > _KEYS_SHOWN else "")
            place = f"under {'.'.join(path[:depth])!r} " if depth else ""
            raise UnknownFormatError(
                f"{text.name} has no key {wanted!r} {place}(keys: {keys or 'none'})"
            )
    where = ".".join(path) or "."
    match scanner.peek():
        case "[":
            yield from _item_rows(scanner, f"{text.name}, {where}")
        case "{":
            for key in scanner.keys(where):
                source = f"{text.name}, {where}, {shortened(key)!r}"
                row = _row(source, scanner.checked(source))
                yield _with_key(row, key) if isinstance(row, Row) else row
        case _:
            raise UnknownFormatError(f"{text.name}: {where!r} is neither an array nor an object")


def _with_key(row: Row, key: str) -> Row:
    """The row with its key, and a field of that name as `column.key`."""
    own = {"column.key" if name == "key" else name: row.fields[name] for name in row.fields}
    return Row(row.source, {"key": key, **own})


def _array_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    array = _Scanner(text)
    yield from _item_rows(array, text.name)
    if array.peek():
        raise CorpusError(f"{text.name}: there is data after the end of the array")


def _item_rows(array: _Scanner, name: str) -> Iterator[Row | BadRowError]:
    array.take("[")
    if array.peek() == "]":
        array.take("]")
        return
    for number in count(1):
        source = f"{name}, item {number}"
        yield _row(source, array.checked(source))
        if array.peek() == "]":
            break
        array.take(",")
    array.take("]")


def _row(source: str, value: Any) -> Row | BadRowError:
    if isinstance(value, dict):
        return Row(source, value)
    return BadRowError(source, f"not a JSON object but {_kind(value)}")


def _kind(value: Any) -> str:
    kinds = {type(None): "null", list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        near = error.doc[error.pos : error.pos + 20].rstrip()
        return f"not JSON: {error.msg} ({f'near {near!r}' if near else 'at the end'})"
    return f"not JSON: {error}"  # an integer of thousands of digits


class _Scanner:
    """Decodes a JSON text value by value, with only one value in memory.

    An incremental parser (ijson) is not an option: it needs gigabytes for a few thousand nested
    brackets, and fails at an invalid byte or a large integer, which are bad rows here.
    """

    def __init__(self, text: TextStream) -> None:
        self._text = text
        self._buffer = ""
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """The next non-blank character, without consuming it; empty at the end."""
        while True:
            blank = _BLANK.match(self._buffer, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._buffer) or not self._read_on():
                return self._buffer[self._at : self._at + 1]

    def take(self, character: str) -> None:
        """Consume this character, which must come next."""
        found = self.peek()
        if found != character:
            shown = repr(found) if found else "the end of the file"
            what = "a JSON array" if character in "[,]" else "JSON"
            raise CorpusError(
                f"{self._text.name}: not {what}: {shown} where {character!r} is expected"
            )
        self._at += 1

    def keys(self, name: str) -> Iterator[str]:
        """The keys of an object; each value must be read before the next key."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            key = self.checked(name)
            if not isinstance(key, str):
                raise CorpusError(f"{self._text.name}: not JSON: {key!r} where a key is expected")
            self.take(":")
            yield key
            if self.peek() == "}":
                self.take("}")
                return
            self.take(",")

    def checked(self, source: str) -> Any:
        """The next value.

        Raises:
            CorpusError: it is not JSON.
        """
        try:
            return self.value()
        except RecursionError:
            raise CorpusTooLargeError(f"{source}: {_TOO_DEEP}") from None
        except ValueError as error:
            raise CorpusError(f"{source}: {_reason(error)}") from None

    def value(self) -> Any:
        """The next value; anything may follow it."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not (_may_be_cut_off(error) and self._read_on()):
                    raise
            else:
                # The value may be the first digits of a number truncated at "1e+".
                if end + 2 < len(self._buffer) or not self._read_on():
                    self._at = end
                    return value

    def _read_on(self) -> bool:
        rest = self._buffer[self._at :]
        if len(rest) > MAX_ROW_BYTES:
            raise CorpusTooLargeError(
                f"{self._text.name}: an item is longer than {size_shown(MAX_ROW_BYTES)}"
            )
        # The rest is decoded again: doubling the block keeps the total work linear.
        block = self._text.read(max(_BLOCK_CHARACTERS, len(rest)))
        if block:
            self._buffer, self._at = rest + block, 0
        return bool(block)


def _may_be_cut_off(error: json.JSONDecodeError) -> bool:
    """Whether more text could complete the value: no literal or escape is longer than this."""
    return error.msg.startswith("Unterminated string") or error.pos > len(error.doc) - 16
