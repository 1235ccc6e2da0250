"""Conditions on metadata as expressions of Milvus, over what `semsearch.stores.milvus.terms` makes.

Nothing of a filter stands in an expression as it was typed: fields are plain names or hashes, and
literals are terms, so there is nothing to escape.

Each test is written so that it is never unknown: milvus-lite takes a comparison with a missing key
for unknown, and so is its `not`, where ours is true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection

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
    field_text,
    filter_error,
)
from semsearch.filters.times import instant
from semsearch.records import BUILT_IN_FIELDS
from semsearch.stores.milvus.terms import (
    HAS_NUMBER,
    HAS_TEXT,
    HAS_TIME,
    NOT_NULL,
    ORDER_CHARACTERS,
    field_key,
    order_code,
    term,
    time_term,
)

#: How many values of a field a pattern of `like` may match.
MAX_LIKE_VALUES = 10_000

#: Holds for no row of any collection.
NEVER = "document < 0"

#: Gives the texts that a field holds and that a pattern matches.
Matching = Callable[[str, re.Pattern[str]], Collection[str]]


def to_expression(condition: Condition, matching: Matching) -> str:
    """An expression that holds for the rows that meet a condition.

    Two times compare as instants; a time compares by its order with times only.

    Args:
        condition: see `semsearch.filters`.
        matching: finds out what `like` means, which Milvus cannot do as we define it.

    Raises:
        FilterError: the condition is more than Milvus can run.
    """
    match condition:
        case Not(inner):
            return f"not ({to_expression(inner, matching)})"
        case And(conditions):
            return " and ".join(f"({to_expression(each, matching)})" for each in conditions)
        case Or(conditions):
            return " or ".join(f"({to_expression(each, matching)})" for each in conditions)
        case IsNull(name):
            return f"not ({_holds_any(name, [NOT_NULL])})"
        case In(name, values):
            return _in(name, values)
        case Like(name, pattern):
            found = matching(name, like_pattern(pattern))
            if len(found) > MAX_LIKE_VALUES:
                raise filter_error(
                    f"{field_text(name)} like …: the pattern matches more than "
                    f"{MAX_LIKE_VALUES:,} values, too many for Milvus; narrow it down"
                )
            return _holds_any(name, list(map(term, found)))
        case Comparison(name, Operator.EQUAL, value):
            return _in(name, [value])
        case Comparison(name, Operator.NOT_EQUAL, value):
            return f"not ({_in(name, [value])})"
        case Comparison(name, operator, value):
            return _ordered(name, operator, value)


def like_pattern(pattern: str) -> re.Pattern[str]:
    """What a whole text matches that a pattern of `like` does."""
    parts = [""]
    for piece in re.findall(r"\\.|[^\\]", pattern, re.DOTALL):
        if piece == "%":
            parts.append("")
        else:
            parts[-1] += "." if piece == "_" else re.escape(piece[-1])
    first, *others = parts
    if not others:
        return re.compile(first, _LIKE_FLAGS)
    # Each part where it first fits, without a way back: with it, some patterns take for ever.
    between = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}", _LIKE_FLAGS)


#: ASCII: the letters beyond it keep their case.
_LIKE_FLAGS = re.DOTALL | re.IGNORECASE | re.ASCII


def _in(name: str, values: Collection[Value]) -> str:
    terms = [
        term(value) if (time := _time(name, value)) is None else time_term(time) for value in values
    ]
    return _holds_any(name, list(dict.fromkeys(terms)))


def _time(name: str, value: Value) -> int | None:
    """The instant of a literal that is a time; ids and titles are none."""
    return None if name in BUILT_IN_FIELDS or not isinstance(value, str) else instant(value)


#: What is compared, and how, of the least or greatest element.
_BOUNDS = {
    Operator.LESS: (0, "<"),
    Operator.LESS_OR_EQUAL: (0, "<="),
    Operator.GREATER: (1, ">"),
    Operator.GREATER_OR_EQUAL: (1, ">="),
}


def _ordered(name: str, operator: Operator, value: Value) -> str:
    if isinstance(value, bool):
        return NEVER
    end, sign = _BOUNDS[operator]
    kind = HAS_TEXT if isinstance(value, str) else HAS_NUMBER
    time = _time(name, value)
    if time is not None:
        kind, value = HAS_TIME, time
    elif isinstance(value, str) and len(value) >= ORDER_CHARACTERS:
        raise filter_error(
            f"{field_text(name)} {operator.value} …: on Milvus, a text that is compared "
            f"by its order has up to {ORDER_CHARACTERS - 1} characters"
        )
    path = _path(f"{field_key(name)}:{kind}{end}")
    return f'{_holds_any(name, [kind])} and {path} {sign} "{order_code(value)}"'


def _holds_any(name: str, terms: list[str]) -> str:
    return f"json_contains_any({_path(field_key(name))}, {json.dumps(terms)})" if terms else NEVER


def _path(key: str) -> str:
    return f'fields["{key}"]'
