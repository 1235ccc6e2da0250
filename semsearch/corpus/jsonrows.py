"""Reads JSON lines, and streams JSON arrays of objects and records inside other values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from semsearch.corpus.limits import MAX_ROW_BYTES, size_shown
from semsearch.corpus.roles import listed, shortened
from semsearch.corpus.table import Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.textstream import TextStream

_BLOCK_CHARACTERS = 64 << 10
_BLANK = re.compile(r"[ \t\n\r]*")


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
    head = look_ahead(rows)
    if not head:
        raise CorpusError(f"{text.name} has no rows")
    columns = dict.fromkeys(name for row in head if isinstance(row, Row) for name in row.fields)
    if not columns:
        raise CorpusError(str(head[0]))
    return Table(text.name, tuple(columns), chain(head, rows))


def _line_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    for number, line in enumerate(text.lines(), start=1):
        if not line.strip():
            continue
        source = f"{text.name}:{number}"
        try:
            yield _row(source, json.loads(line))
        except (ValueError, RecursionError) as error:
            yield BadRowError(source, _reason(error))


def _array_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    array = _Scanner(text)
    yield from _item_rows(array, text.name)
    if array.peek():
        raise CorpusError(f"{text.name}: there is data after the end of the array")


def _record_rows(text: TextStream, path: list[str]) -> Iterator[Row | BadRowError]:
    scanner = _Scanner(text)
    for wanted in path:
        others: list[str] = []
        for key in scanner.keys(text.name):
            if key == wanted:
                break
            others.append(key)
            scanner.value(f"{text.name}, {shortened(key)!r}")
        else:
            raise CorpusError(f"{text.name} has no key {wanted!r} (keys: {listed(others)})")
    where = f"{text.name}, {'.'.join(path) or '.'}"
    if scanner.peek() != "{":
        yield from _item_rows(scanner, where)
        return
    for key in scanner.keys(where):
        source = f"{where}, {shortened(key)!r}"
        row = _row(source, scanner.value(source))
        if isinstance(row, Row):
            # A field of that name becomes `column.key`.
            own = {"column.key" if name == "key" else name: row.fields[name] for name in row.fields}
            row = Row(source, {"key": key, **own})
        yield row


def _item_rows(array: _Scanner, name: str) -> Iterator[Row | BadRowError]:
    array.take("[")
    for number in count(1):
        if number == 1 and array.peek() == "]":
            break
        source = f"{name}, item {number}"
        yield _row(source, array.value(source))
        if array.peek() == "]":
            break
        array.take(",")
    array.take("]")


def _row(source: str, value: Any) -> Row | BadRowError:
    if isinstance(value, dict):
        return Row(source, value)
    return BadRowError(source, f"not a JSON object but {shortened(json.dumps(value), 20)}")


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its lists and objects are nested too deeply"
    return f"not JSON: {getattr(error, 'msg', error)}"  # others: an integer of thousands of digits


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
            raise CorpusError(
                f"{self._text.name}: not JSON: {shown} where {character!r} is expected"
            )
        self._at += 1

    def keys(self, name: str) -> Iterator[str]:
        """The keys of an object; each value must be read before the next key."""
        self.take("{")
        while self.peek() != "}":
            key = self.value(name)
            self.take(":")
            yield str(key)
            if self.peek() != "}":
                self.take(",")
        self.take("}")

    def value(self, source: str) -> Any:
        """The next value; anything may follow it.

        Raises:
            CorpusError: it is not JSON.
        """
        self.peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except (ValueError, RecursionError) as error:
                if not (_may_be_cut_off(error) and self._read_on()):
                    raise CorpusError(f"{source}: {_reason(error)}") from None
            else:
                # The value may be the first digits of a number truncated at "1e+".
                if end + 2 < len(self._buffer) or not self._read_on():
                    self._at = end
                    return value

    def _read_on(self) -> bool:
        rest = self._buffer[self._at :]
        if len(rest) > MAX_ROW_BYTES:
            raise CorpusError(
                f"{self._text.name}: an item is longer than {size_shown(MAX_ROW_BYTES)}"
            )
        # The rest is decoded again: doubling the block keeps the total work linear.
        block = self._text.read(max(_BLOCK_CHARACTERS, len(rest)))
        if block:
            self._buffer, self._at = rest + block, 0
        return bool(block)


def _may_be_cut_off(error: Exception) -> bool:
    """Whether more text could complete the value: no literal or escape is longer than this."""
    return isinstance(error, json.JSONDecodeError) and (
        error.msg.startswith("Unterminated string") or error.pos > len(error.doc) - 16
    )
