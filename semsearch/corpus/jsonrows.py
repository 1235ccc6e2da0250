"""Reads JSON lines, arrays of objects, and records inside other values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from semsearch.corpus.encodings import TextStream
from semsearch.corpus.roles import listed, shortened
from semsearch.corpus.table import Row, Table, look_ahead
from semsearch.errors import BadRowError, CorpusError

#: The maximum size of a JSON file, which is parsed as a whole, unlike JSON lines.
MAX_JSON_CHARACTERS = 1 << 29


def read_json(text: TextStream, records: str | None, *, is_array: bool) -> Table:
    """The table of a JSON file: of its lines, of its items, or of records inside of it.

    Args:
        text: the file.
        records: the keys that lead to the records, an array or an object of objects, joined by
            dots (``data.articles``); ``.`` if the whole value contains them. The keys of records
            in an object become a column `key`.
        is_array: whether the file is one array of objects, rather than an object in each line.

    Raises:
        CorpusError: it is not JSON, has no rows, or none of the first rows can be used.
    """
    is_whole = is_array or records is not None
    rows = _records(text, records or "") if is_whole else _line_rows(text)
    head = look_ahead(rows)
    if head and not any(isinstance(row, Row) for row in head):
        raise CorpusError(f"{head[0]}{'' if is_whole else _advice(text)}")
    columns = dict.fromkeys(name for row in head if isinstance(row, Row) for name in row.fields)
    return Table(text.name, tuple(columns), chain(head, rows))


def _advice(text: TextStream) -> str:
    """What to do with a file that is one object over several lines."""
    try:
        value = json.loads(text.read(MAX_JSON_CHARACTERS))
    except (ValueError, RecursionError):
        return ""
    paths = [path for path, items in _lists(value) if isinstance(items[0], dict)]
    return f"; the file is one object: add --records {(paths or ['.'])[0]}"


def _lists(value: Any) -> Iterator[tuple[str, list[Any]]]:
    """The lists inside an object that are not empty, by their paths."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, list) and item:
            yield key, item
        yield from ((f"{key}.{path}", found) for path, found in _lists(item))


def _line_rows(text: TextStream) -> Iterator[Row | BadRowError]:
    for number, line in enumerate(text.lines(), start=1):
        if not line.strip():
            continue
        source = f"{text.name}:{number}"
        try:
            yield _row(source, json.loads(line))
        except (ValueError, RecursionError) as error:
            yield BadRowError(source, f"not JSON: {error}")


def _records(text: TextStream, path: str) -> Iterator[Row | BadRowError]:
    content = text.read(MAX_JSON_CHARACTERS + 1)
    if len(content) > MAX_JSON_CHARACTERS:
        limit = f"longer than {MAX_JSON_CHARACTERS:,} characters"
        raise CorpusError(f"{text.name} is {limit}; JSON lines (.jsonl) may be longer")
    try:
        value = json.loads(content.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{text.name}: not JSON: {error}") from None
    keys = [key for key in path.split(".") if key]
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            others = f" (keys: {listed(list(value))})" if isinstance(value, dict) else ""
            raise CorpusError(f"{text.name} has no key {key!r}{others}")
        value = value[key]
    where = f"{text.name}, {'.'.join(keys) or '.'}" if path else text.name
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


def _row(source: str, value: Any) -> Row | BadRowError:
    if isinstance(value, dict):
        return Row(source, value)
    return BadRowError(source, f"not a JSON object but {shortened(json.dumps(value), 20)}")
