"""Reads JSON lines, streams JSON arrays of objects, and finds records inside other values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from semsearch.corpus.limits import MAX_JSON_CHARACTERS, MAX_ROW_BYTES, size_shown
from semsearch.corpus.roles import listed, shortened
from semsearch.corpus.table import Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError

if TYPE_CHECKING:
    from semsearch.corpus.encodings import TextStream

_BLOCK_CHARACTERS = 64 << 10
_BLANK = re.compile(r"[ \t\n\r]*")


def read_json(text: TextStream, records: str | None, *, is_array: bool) -> Table:
    """The table of a JSON file: of its lines, of its items, or of records inside of it.

    Args:
        text: the file.
        records: the keys that lead to the records, an array or an object of objects, joined by
            dots (``data.articles``); ``.`` if the whole value contains them. The keys of records
            in an object become a column `key`.
        is_array: whether the file is one array of objects, rather than an object in each line.

    Raises:
        CorpusError: it is not JSON, has no rows, or none of the first rows can be used; raised
            later if an array is damaged.
    """
    if records is not None:
        rows = _record_rows(text, [key for key in records.split(".") if key])
    else:
        rows = _array_rows(text) if is_array else _line_rows(text)
    head = look_ahead(rows)
    if head and isinstance(head[0], BadRowError) and not any(isinstance(r, Row) for r in head):
        raise CorpusError(str(head[0]))
    columns = dict.fromkeys(name for row in head if isinstance(row, Row) for name in row.fields)
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


def _record_rows(text: TextStream, path: list[str]) -> Iterator[Row | BadRowError]:
    content = text.read(MAX_JSON_CHARACTERS + 1)
    if len(content) > MAX_JSON_CHARACTERS:
        raise CorpusError(f"{text.name} is longer than {size_shown(MAX_JSON_CHARACTERS)}")
    try:
        value = json.loads(content.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{text.name}: {_reason(error)}") from None
    for key in path:
        if not isinstance(value, dict) or key not in value:
            keys = f" (keys: {listed(list(value))})" if isinstance(value, dict) else ""
            raise CorpusError(f"{text.name} has no key {key!r}{keys}")
        value = value[key]
    where = f"{text.name}, {'.'.join(path) or '.'}"
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            yield _row(f"{where}, item {number}", item)
        return
    if not isinstance(value, dict):
        raise CorpusError(f"{where} is neither a list nor an object")
    for key, item in value.items():
        row = _row(f"{where}, {shortened(key)!r}", item)
        if isinstance(row, Row):
            # A field of that name becomes `column.key`.
            own = {"column.key" if name == "key" else name: row.fields[name] for name in row.fields}
            row = Row(row.source, {"key": key, **own})
        yield row


def _array_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    array = _Scanner(text)
    array.take("[")
    for number in count(1):
        if number == 1 and array.peek() == "]":
            break
        source = f"{text.name}, item {number}"
        yield _row(source, array.value(source))
        if array.peek() == "]":
            break
        array.take(",")
    array.take("]")
    if array.peek():
        raise CorpusError(f"{text.name}: there is data after the end of the array")


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
