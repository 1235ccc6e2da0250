"""Reference implementation of filter conditions in plain Python, and values to compare."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from semsearch.filters import And, Comparison, Condition, In, IsNull, Like, Not, Operator, Or

ORDERS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}


def holds(condition: Condition, row: Mapping[str, Any]) -> bool:
    match condition:
        case Not(inner):
            return not holds(inner, row)
        case And(conditions):
            return all(holds(each, row) for each in conditions)
        case Or(conditions):
            return any(holds(each, row) for each in conditions)
        case IsNull(name):
            return row.get(name) is None
        case Comparison(name, Operator.NOT_EQUAL, literal):
            return not holds(Comparison(name, Operator.EQUAL, literal), row)
    value = row.get(condition.field)
    return any(passes(each, condition) for each in (value if isinstance(value, list) else [value]))


def passes(value: Any, test: Comparison | In | Like) -> bool:
    match test:
        case Comparison(_, order, literal):
            return kind(value) is kind(literal) and ORDERS[order](*comparable(value, literal))
        case In(name, literals):
            return any(passes(value, Comparison(name, Operator.EQUAL, each)) for each in literals)
        case Like(_, pattern):
            return isinstance(value, str) and like(value, pattern)


def kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def comparable(value: Any, literal: Any) -> tuple[Any, Any]:
    """Two times as instants, anything else as it is."""
    times = time_of(value), time_of(literal)
    return (value, literal) if None in times else times


def time_of(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def like(text: str, pattern: str) -> bool:
    wild = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    regex = "".join(wild.get(piece) or re.escape(piece[-1]) for piece in pieces)
    # ASCII: other letters are compared case-sensitively.
    return re.fullmatch(regex, text, re.DOTALL | re.IGNORECASE | re.ASCII) is not None


#: Values of the field `a`, one per document, and what they are compared with.
VALUES = [
    *(0, 1, 1.0, 1.5, -1, 2**52 + 1, 1e300, "", "a", "A", "á", "a%b", "ab", "a\\b", 'a"b'),
    *("x" * 70, "😀", "a\tb\n", "2001-05-06", "2001-05-06T02:00+02:00", True, False, None, []),
    *(
        [None],
        [1, "a"],
        ["A", "a", "ab"],
        [0.5, 1, 1.5, 3],
        ["b", "ab"],
        [[1]],
        {"b": 1},
        [True, "2001-05-07"],
    ),
]
LITERALS = ["0", "1", "1.5", "-1", "1e300", "''", "'a'", "'á'", "'a\"b'", "'😀'", "'2001-05-06'"]
PATTERNS = ["%", "a%", "%b", "A_", "a\\%b", "x%", "", "😀", '%"%']
TESTS = [
    *(f"a {sign} {value}" for sign in ("=", "!=") for value in [*LITERALS, "true", "false"]),
    *(f"a {sign} {value}" for sign in ("<", "<=", ">", ">=") for value in LITERALS),
    *("a is null", "a is not null", "a in ()", "a in (1, 'ab', true)", "a not in (1, 'a')"),
    *("a between 0 and 1", "a between 'a' and 'b'", "a not between 1 and 2"),
    *("not (a = 1 or a > 'a')", "not (a > 0) and a is not null", "title is null"),
    *("title = 'Title 1'", "id = 'v3' or id in ('v4', 'odd')", "metadata.id = 'own'"),
    *('"odd ""name\'] or true or [" = 1', '"b.c" = 2 and not a = 3', "\"b c\" = 'x'"),
]
ODD = {"odd \"name'] or true or [": 1, "b c": "x", "id": "own", "b.c": 2}
