r"""The language of ``where``: conditions on the metadata of documents.

    year >= 1970 and (genres in ('Drama', 'Crime') or not "release date" is null)

The grammar, with keywords in any case::

    condition   = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" condition ")" | test
    test        = field ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) literal
                | field [ "not" ] "in" "(" [ literal { "," literal } ] ")"
                | field [ "not" ] "like" text
                | field [ "not" ] "between" literal "and" literal
                | field "is" [ "not" ] "null"
    field       = [ "metadata." ] name | "a name" | `a name`
    name        = letters, digits and _, not starting with a digit
    literal     = text | number | "true" | "false"
    text        = 'text' | "text"

Inside quotes, the quote character itself is written twice. A number is a 64-bit integer or a finite
decimal fraction, with optional sign and exponent.

*   ``id`` and ``title`` are those of the document. A metadata field with such a name is written
    ``metadata.id``; all others can have this prefix, too. Inside quotes, a dot is part of the name:
    ``"metadata.id"`` is the metadata field named metadata.id.
*   Every condition is true or false. A test of a missing or null field is false, so its ``not`` is
    true. ``a != 1`` is ``not a = 1``, ``a not in …`` is ``not a in …``, and so on.
*   A test of a list is true if it is true for any element: ``genres != 'Drama'`` matches lists
    without that element. ``a between 1 and 5`` is ``a >= 1 and a <= 5``, and different elements may
    satisfy the two tests.
*   A literal compares only with values of its own JSON type: numbers with numbers (1990 equals
    1990.0), text with text, booleans with booleans, which have no order. Objects, and lists inside
    lists, equal nothing.
*   Two times in ISO 8601 compare as instants, whatever their notations, except in ``id`` and
    ``title`` (`semsearch.filters.times`). Any other text compares by its code points.
*   ``like`` matches the whole text: ``%`` matches any run of characters, ``_`` any one, and a
    backslash escapes the next character. Case is ignored for A-Z only.
*   ``is null`` is true for a missing or null field, not for [] or [null]. ``in ()`` is never true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from semsearch.errors import FilterError
from semsearch.records import BUILT_IN_FIELDS, metadata_name

Value: TypeAlias = str | int | float | bool


class Operator(Enum):
    """How a value is compared with a literal."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def is_order(self) -> bool:
        """Whether the order of the values matters."""
        return self not in (Operator.EQUAL, Operator.NOT_EQUAL)


@dataclass(frozen=True)
class Comparison:
    """``year >= 1970``."""

    field: str
    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{field_text(self.field)} {self.operator.value} {literal_text(self.value)}"


@dataclass(frozen=True)
class In:
    """``genres in ('Drama', 'Crime')``."""

    field: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{field_text(self.field)} in ({', '.join(map(literal_text, self.values))})"


@dataclass(frozen=True)
class Like:
    """``title like 'The %'``."""

    field: str
    pattern: str

    def __str__(self) -> str:
        return f"{field_text(self.field)} like {literal_text(self.pattern)}"


@dataclass(frozen=True)
class IsNull:
    """``year is null``."""

    field: str

    def __str__(self) -> str:
        return f"{field_text(self.field)} is null"


@dataclass(frozen=True)
class Not:
    """``not year = 1970``."""

    condition: Condition

    def __str__(self) -> str:
        return f"not {_operand_text(self.condition, And, Or)}"


@dataclass(frozen=True)
class And:
    """``year = 1970 and genres = 'Drama'``: two conditions or more."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(_operand_text(operand, And, Or) for operand in self.conditions)


@dataclass(frozen=True)
class Or:
    """``year = 1970 or year = 1971``: two conditions or more."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(_operand_text(operand, Or) for operand in self.conditions)


Test: TypeAlias = Comparison | In | Like | IsNull

#: A parsed expression. ``str()`` of it is an equivalent expression.
Condition: TypeAlias = Test | Not | And | Or


def field_text(field: str) -> str:
    """A field as written in expressions, quoted if necessary."""
    name = metadata_name(field)
    if name in BUILT_IN_FIELDS or is_bare_name(name):
        return field
    return '"{}"'.format(name.replace('"', '""'))


def literal_text(value: Value) -> str:
    """A literal, Python's or NumPy's, as written in expressions."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else repr(value)


KEYWORDS = {"and", "between", "false", "in", "is", "like", "not", "null", "or", "true"}
_BARE_NAME = re.compile(r"[^\W\d]\w*")


def is_bare_name(text: str) -> bool:
    """Whether a field's name needs no quotes."""
    return _BARE_NAME.fullmatch(text) is not None and text.lower() not in KEYWORDS


def filter_error(reason: str, column: int | None = None) -> FilterError:
    """An error about a filter: one printable line, whatever the expression contains."""
    place = "" if column is None else f" (column {column})"
    line = "".join(character if character.isprintable() else " " for character in reason)
    return FilterError(f"{line if len(line) <= 500 else line[:499] + '…'}{place}")


def _operand_text(condition: Condition, *looser: type[And | Or]) -> str:
    return f"({condition})" if isinstance(condition, looser) else str(condition)
