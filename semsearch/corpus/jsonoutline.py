"""Finds the records in a file that is one JSON object, from its beginning."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import NamedTuple

from semsearch.errors import quoted

# A single quote opens a truncated string.
_MARK = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}\[\]:,"]')
# Line endings of indented JSON, other than closing brackets.
_LINE_ENDS = ("{", "[", ",", ":")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")

KEYS_SHOWN = 8
#: API responses nest their records under a key or two.
MAX_DEPTH = 4


class Outline(NamedTuple):
    """The first object of a JSON text.

    Args:
        keys: its keys so far.
        arrays: the paths (keys) of arrays of objects in it.
        objects: the number of its values that are objects.
        end: the position after its last character; None if the text is truncated.
    """

    keys: list[str]
    arrays: list[tuple[str, ...]]
    objects: int
    end: int | None

    def advice(self, name: str, text_columns: Collection[str]) -> str:
        """What the file is, and how to make a corpus of it."""
        more = ", …" if len(self.keys) > KEYS_SHOWN or self.end is None else ""
        keys = f"(keys: {', '.join(self.keys[:KEYS_SHOWN])}{more})"
        if self.is_columns(text_columns):
            return (
                f"{name} is one JSON object of columns {keys}; save it with one object per row: "
                "to_json(PATH, orient='records', lines=True) in pandas"
            )
        what = f"is one JSON object {keys}"
        if self.arrays:
            shown = ", ".join("." + ".".join(keys) for keys in self.arrays[:KEYS_SHOWN])
            what += f" with arrays of objects in it ({shown})"
        # If only one of its objects contains arrays, its values are not records.
        if self.holds_objects and len({keys[0] for keys in self.arrays}) != 1:
            return f"{name} {what}; its values are records: --records ."
        if self.arrays and all(map(_PLAIN_KEY.fullmatch, self.arrays[0])):
            return f"{name} {what}; name its records: --records {'.'.join(self.arrays[0])}"
        command = "" if self.arrays else f": {_jq('.', name)} > records.jsonl"
        return f"{name} {what}; convert its records to one object per line{command}"

    @property
    def holds_objects(self) -> bool:
        """Whether all of its values are objects."""
        return 0 < len(self.keys) == self.objects

    def is_columns(self, text_columns: Collection[str]) -> bool:
        """Whether it has an object for each column, as written by pandas."""
        return self.holds_objects and self.names_any(text_columns)

    def names_any(self, text_columns: Collection[str]) -> bool:
        """Whether one of its keys is a text column."""
        return any(key.lower() in text_columns or key in text_columns for key in self.keys)


def _jq(path: str, name: str) -> str:
    file = quoted(name)
    if name.lower().endswith(".gz"):
        return f"gzip -dc {file} | jq -c '{path}'"
    return f"jq -c '{path}' {file}"


def nested_object(
    text: str, *, is_whole: bool, has_long_lines: bool, text_columns: Collection[str]
) -> Outline | None:
    """The outline of a file that is one object with records inside it.

    Args:
        text: the beginning of the file.
        is_whole: whether that is the whole file.
        has_long_lines: whether a single record may be longer than `text`.
        text_columns: an object with one of these keys is a record itself.

    Returns:
        None if each line is, or may be, a record.
    """
    found = outline(text)
    if found is None:
        return None
    line, *more = text[: found.end].rstrip().split("\n", 1)
    if more:  # otherwise the line is a damaged record
        return found if line.rstrip().endswith(_LINE_ENDS) else None
    if found.end is None:
        has_records = found.arrays or found.is_columns(text_columns)
        return found if has_records and not has_long_lines else None
    is_only_line = is_whole and not text[found.end :].strip()
    has_records = found.holds_objects or (found.arrays and not found.names_any(text_columns))
    return found if is_only_line and has_records else None


def outline(text: str) -> Outline | None:
    """The first object of a text, which may be truncated.

    Returns:
        None if the text does not begin with an object, or is not JSON.
    """
    if not text.startswith("{"):
        return None
    found = Outline([], [], 0, None)
    objects = 0
    open_keys: list[str | None] = []  # the current key of each open object; None is an array
    expecting_key = False
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark == '"':
            break
        if mark in "{[":
            if expecting_key:
                return None
            if mark == "{" and open_keys and open_keys[-1] is None:
                _note_array(found.arrays, open_keys[:-1])
            objects += mark == "{" and len(open_keys) == 1
            expecting_key = mark == "{"
            open_keys.append("" if expecting_key else None)
        elif mark in "}]":
            expecting_key = False
            open_keys.pop()
            if not open_keys:
                return found._replace(objects=objects, end=match.end())
        elif mark == ",":
            expecting_key = open_keys[-1] is not None
        elif mark != ":" and expecting_key:
            expecting_key = False
            open_keys[-1] = _text(mark)
            if len(open_keys) == 1:
                found.keys.append(_text(mark))
    return found._replace(objects=objects)


def _note_array(arrays: list[tuple[str, ...]], keys: list[str | None]) -> None:
    path = tuple(key for key in keys if key is not None)
    if len(path) == len(keys) <= MAX_DEPTH and path not in arrays:
        arrays.append(path)


def _text(mark: str) -> str:
    try:
        return str(json.loads(mark))
    except ValueError:
        return mark
