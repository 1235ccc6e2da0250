"""Metadata as JSON for Milvus' filters, and conditions as expressions over it.

Milvus has no tests of lists for order, and its versions differ in how values of unlike types
compare. So the values of each field stand in lists, one for each kind, behind the greatest and the
least of them. A number is a float; a time is an instant, and a text under another kind:

    {"genres": {"text": ["Drama", "Crime", "Crime", "Drama"]}, "year": {"number": [1990.0, …]},
     "day": {"time": [1717200000000000.0, …], "written": ["2024-06-01", …]}}

Inside a ``not``, no test is ever unknown: milvus-lite takes a comparison with a missing key for
unknown, and so is its ``not``, where ours is true.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from semsearch.filters import (
    And,
    Comparison,
    Condition,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Value,
)
from semsearch.filters.times import instant
from semsearch.records import BUILT_IN_FIELDS, Kind, metadata_field

MAX_NUMBER = sys.float_info.max

#: Holds for no row of any collection with documents' numbers.
NEVER = "document < 0"

#: Returns the texts of a field that match a pattern.
MatchingTexts = Callable[[str, re.Pattern[str]], Collection[str]]

#: How many documents have a kind of value, such as ``list of text``, by field and kind.
KindCounts = Mapping[str, Mapping[str, int]]


def filter_json(document_id: str, title: str | None, metadata: str) -> dict[str, Any]:
    """The fields of a document as filters test them, given its metadata as JSON."""
    values = {metadata_field(name): value for name, value in json.loads(metadata).items()}
    values |= dict(zip(BUILT_IN_FIELDS, (document_id, title), strict=True))
    return {name: _by_kind(name, value) for name, value in values.items() if value is not None}


def to_expression(
    condition: Condition, matching: MatchingTexts, *, is_negated: bool = False
) -> str:
    """An expression that holds for the rows that match a condition.

    Args:
        condition: see `semsearch.filters`.
        matching: finds the texts for `like`, which works differently in Milvus.
        is_negated: whether it is inside a `not`.
    """
    match condition:
        case Not(inner):
            return f"not ({to_expression(inner, matching, is_negated=True)})"
        case And(operands) | Or(operands):
            word = " and " if isinstance(condition, And) else " or "
            parts = (to_expression(each, matching, is_negated=is_negated) for each in operands)
            return word.join(f"({part})" for part in parts)
        case IsNull(name):
            return f"not (exists {_path(name)})"
        case In(name, values):
            return _equals_any(name, values)
        case Like(name, pattern):
            texts = matching(name, like_pattern(pattern))
            return _any_of(_holds_any(name, kind, texts) for kind in ("text", "written"))
        case Comparison(name, Operator.EQUAL, value):
            return _equals_any(name, [value])
        case Comparison(name, Operator.NOT_EQUAL, value):
            return f"not ({_equals_any(name, [value])})"
        case Comparison(name, operator, value):
            return _any_of(
                _in_order(name, kind, operator, compared, is_negated)
                for kind, compared in _comparable(name, value)
            )


def like_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression for a pattern of `like`."""
    wildcards = {"%": "*", "_": "?"}
    pieces = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    wild = "".join(wildcards.get(piece) or glob.escape(piece[-1]) for piece in pieces)
    # ASCII: only A-Z match without regard to case. `translate` avoids backtracking.
    return re.compile(fnmatch.translate(wild), re.IGNORECASE | re.ASCII)


def quoted_text(text: str) -> str:
    """A text as a literal of Milvus' expressions."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped}"'


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def one_of(field: str, values: Sequence[int] | Sequence[str]) -> str:
    """A condition that a field has one of these values."""
    listed = (quoted_text(value) if isinstance(value, str) else str(value) for value in values)
    return f"{field} in [{', '.join(listed)}]"


def all_of(*conditions: str) -> str:
    """A condition that all of these hold, of which some may be empty."""
    return " and ".join(f"({condition})" for condition in conditions if condition)


def changed_counts(
    counts: KindCounts, added: Iterable[str], removed: Iterable[str] = ()
) -> dict[str, dict[str, int]]:
    """The counts after documents are added and removed, given by their metadata."""
    totals = Counter(
        {(name, kind): count for name, kinds in counts.items() for kind, count in kinds.items()}
    )
    totals.update(pair for metadata in added for pair in _kinds(metadata))
    totals.subtract(pair for metadata in removed for pair in _kinds(metadata))
    changed: dict[str, dict[str, int]] = {}
    for (name, kind), count in sorted(totals.items(), key=lambda item: (item[0][0], -item[1])):
        if count > 0:
            changed.setdefault(name, {})[kind] = count
    return changed


def _kinds(metadata: str) -> Iterator[tuple[str, str]]:
    for name, value in json.loads(metadata).items():
        prefix = "list of " if isinstance(value, list) and value else ""
        yield from {(name, f"{prefix}{_kind(element).value}") for element in _elements(value)}


def _kind(value: Any) -> Kind:
    if isinstance(value, str):
        return Kind.TEXT if instant(value) is None else Kind.DATE
    kinds = {bool: Kind.BOOLEAN, dict: Kind.OBJECT, list: Kind.LIST, type(None): Kind.NULL}
    return kinds.get(type(value), Kind.NUMBER)


def _elements(value: Any) -> list[Any]:
    """The elements of a list; any other value, and an empty list, as the only one."""
    return value if isinstance(value, list) and value else [value]


def _by_kind(name: str, value: Any) -> dict[str, list[Any]]:
    """The values of a field by kind: the greatest, the least, and the others."""
    values: dict[str, list[Any]] = {}
    for element in _elements(value):
        if isinstance(element, (str, bool, int, float)):
            kind, compared = _comparable(name, element)[0]
            values.setdefault(kind, []).append(compared)
            if kind == "time":
                values.setdefault("written", []).append(element)
    for some in values.values():
        some.sort()
    return {kind: [some[-1], some[0], *some[1:-1]] for kind, some in values.items()}


def _comparable(name: str, value: Value) -> list[tuple[str, Value]]:
    """The kinds that a value is compared with, its own first, and the value for each of them."""
    if isinstance(value, bool):
        return [("boolean", value)]
    if not isinstance(value, str):
        return [("number", float(max(-MAX_NUMBER, min(value, MAX_NUMBER))))]
    time = None if name in BUILT_IN_FIELDS else instant(value)
    if time is None:
        return [("text", value), ("written", value)]
    return [("time", float(time)), ("text", value)]


def _in_order(name: str, kind: str, operator: Operator, value: Value, is_negated: bool) -> str:
    is_above = operator in (Operator.GREATER, Operator.GREATER_OR_EQUAL)
    path = _path(name, kind)
    test = f"{path}[{0 if is_above else 1}] {operator.value} {_literal_text(value)}"
    return f"(exists {path}) and ({test})" if is_negated else test


def _equals_any(name: str, values: Collection[Value]) -> str:
    by_kind: dict[str, list[Value]] = {}
    for value in values:
        kind, compared = _comparable(name, value)[0]
        by_kind.setdefault(kind, []).append(compared)
    return _any_of(_holds_any(name, kind, literals) for kind, literals in by_kind.items())


def _holds_any(name: str, kind: str, values: Collection[Value]) -> str:
    if not values:
        return NEVER
    literals = ", ".join(map(_literal_text, values))
    return f"json_contains_any({_path(name, kind)}, [{literals}])"


def _any_of(tests: Iterable[str]) -> str:
    return " or ".join(f"({test})" for test in tests) or NEVER


def _literal_text(value: Value) -> str:
    return quoted_text(value) if isinstance(value, str) else json.dumps(value)


def _path(*keys: str) -> str:
    return "fields" + "".join(f"[{quoted_text(key)}]" for key in keys)
