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
    field       = [ "metadata." ] name
    name        = letters, digits and _, not starting with a digit | "a name" | `a name`
    literal     = text | number | "true" | "false"
    text        = 'text' | "text"

Inside quotes, the quote character itself is written twice. A number is a 64-bit integer or a finite
decimal fraction, with optional sign and exponent.

Meaning:

*   ``id`` and ``title`` are those of the document, whatever its metadata holds. A metadata field
    with such a name is written ``metadata.id``; all other fields can have this prefix, too. Inside
    quotes, a dot is part of the name: ``"metadata.id"`` is the metadata field named metadata.id.
*   Every condition is true or false. A test of a missing or null field is false, so its ``not`` is
    true. ``a != 1`` is ``not a = 1``, ``a not in …`` is ``not a in …``, and so on.
*   A test of a list is true if it is true for any element. ``genres != 'Drama'`` therefore matches
    lists without that element. ``a between 1 and 5`` is ``a >= 1 and a <= 5``, and different
    elements may satisfy the two tests.
*   A literal compares only with values of its own JSON type: numbers with numbers (1990 equals
    1990.0), text with text, booleans with booleans. Objects, and lists inside lists, equal
    nothing. Booleans have no order.
    An index converts or refuses a literal of a type that the field never has, reads 007 as the
    text '007' where a field holds text, takes a date without a time for its midnight, and writes
    a time as the field's values are written (`semsearch.stores.filtering`).
*   Text is equal if its code points are equal, and is ordered by code points.
*   ``like`` matches the whole text: ``%`` matches any run of characters, ``_`` any one, and a
    backslash escapes the next character. Case is ignored for A-Z only.
*   ``is null`` is true if the field is missing or null, but not for an empty list or [null].
*   ``in ()`` is never true.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import NamedTuple, Self, TypeAlias

from semsearch.arguments import check_text
from semsearch.errors import FilterError
from semsearch.records import (
    BUILT_IN_FIELDS,
    METADATA_PREFIX,
    metadata_field,
    metadata_name,
    qualified,
)

#: The maximum length of an expression, and the maximum nesting of parentheses and `not`.
MAX_CHARACTERS = 100_000
MAX_NESTING = 100

Value: TypeAlias = str | int | float | bool


class SpelledNumber(int):
    """A whole number with another spelling than Python's, such as 007, which a text may equal."""

    spelling: str

    @classmethod
    def of(cls, number: int, spelling: str) -> Self:
        """A number with its spelling."""
        found = cls(number)
        found.spelling = spelling
        return found


class Operator(Enum):
    """How a value is compared with a literal."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


class _WithLiterals:
    """Equal with equal literals of equal types: 1 and true match different documents."""

    __slots__ = ()

    def _key(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WithLiterals) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, eq=False, slots=True)
class Comparison(_WithLiterals):
    """``year >= 1970``."""

    field: str
    operator: Operator
    value: Value

    def _key(self) -> tuple[object, ...]:
        return self.field, self.operator, type(self.value), self.value

    def __str__(self) -> str:
        return f"{field_text(self.field)} {self.operator.value} {literal_text(self.value)}"


@dataclass(frozen=True, eq=False, slots=True)
class In(_WithLiterals):
    """``genres in ('Drama', 'Crime')``."""

    field: str
    values: tuple[Value, ...]

    def _key(self) -> tuple[object, ...]:
        return self.field, tuple(map(type, self.values)), self.values

    def __str__(self) -> str:
        return f"{field_text(self.field)} in ({', '.join(map(literal_text, self.values))})"


@dataclass(frozen=True, slots=True)
class Like:
    """``title like 'The %'``."""

    field: str
    pattern: str

    def __str__(self) -> str:
        return f"{field_text(self.field)} like {literal_text(self.pattern)}"


@dataclass(frozen=True, slots=True)
class IsNull:
    """``year is null``."""

    field: str

    def __str__(self) -> str:
        return f"{field_text(self.field)} is null"


@dataclass(frozen=True, slots=True)
class Not:
    """``not year = 1970``."""

    condition: Condition

    def __str__(self) -> str:
        return f"not {_operand_text(self.condition, And, Or)}"


@dataclass(frozen=True, slots=True)
class And:
    """``year = 1970 and genres = 'Drama'``: two conditions or more."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(_operand_text(operand, And, Or) for operand in self.conditions)


@dataclass(frozen=True, slots=True)
class Or:
    """``year = 1970 or year = 1971``: two conditions or more."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(_operand_text(operand, Or) for operand in self.conditions)


#: A parsed expression. ``str()`` of it is an equivalent expression.
Condition: TypeAlias = Comparison | In | Like | IsNull | Not | And | Or


def parse(expression: str) -> Condition:
    """Parse an expression.

    Raises:
        FilterError: it is invalid; the message has the column and what was expected.
        ArgumentError: it is not a string.
    """
    check_text("where", expression)
    if len(expression) > MAX_CHARACTERS:
        raise filter_error(f"the expression is longer than {MAX_CHARACTERS:,} characters")
    if unusable := _UNUSABLE.search(expression):
        code = ord(unusable.group())
        raise filter_error(f"no text contains the character U+{code:04X}", unusable.start() + 1)
    return _Parser(expression).parse()


def fields(condition: Condition) -> set[str]:
    """The names of the fields that a condition tests."""
    match condition:
        case Not(inner):
            return fields(inner)
        case And(conditions) | Or(conditions):
            return set().union(*map(fields, conditions))
        case _:
            return {condition.field}


def field_text(field: str) -> str:
    """A field as written in expressions, quoted if necessary."""
    name = metadata_name(field)
    if name in BUILT_IN_FIELDS or _is_bare_name(name):
        return field
    return '"{}"'.format(name.replace('"', '""'))


def filter_message(reason: str, column: int | None = None) -> str:
    """A message about a filter in one printable line, whatever the expression contains."""
    place = "" if column is None else f" (column {column})"
    line = "".join(character if character.isprintable() else " " for character in reason)
    return f"where: {line if len(line) <= 500 else line[:499] + '…'}{place}"


def filter_error(reason: str, column: int | None = None) -> FilterError:
    """An error with a `filter_message`."""
    return FilterError(filter_message(reason, column))


def literal_text(value: Value) -> str:
    """A literal, Python's or NumPy's, as written in expressions."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return value.spelling if isinstance(value, SpelledNumber) else repr(value)


def conjunction(first: str | None, second: str | None) -> str | None:
    """An expression that requires both expressions; None stands for no condition.

    Raises:
        FilterError: one of two is invalid.
        ArgumentError: one of two is not a string.
    """
    if first is None or second is None:
        return second if first is None else first
    return str(And((parse(first), parse(second))))


def parse_number(text: str) -> int | float | None:
    """Parse a number; infinite if it is too large, None if the text is not a number."""
    if not _NUMBER.fullmatch(text):
        return None
    number: int | float = float(text)
    if math.isfinite(number) and text.lstrip("+-").isdigit():
        number = int(Decimal(text))  # int() refuses a text of thousands of digits
    in_range = isinstance(number, float) or -(2**63) <= number < 2**63
    return number if in_range else math.inf


def _operand_text(condition: Condition, *looser: type[And | Or]) -> str:
    return f"({condition})" if isinstance(condition, looser) else str(condition)


def _is_bare_name(text: str) -> bool:
    return _BARE_NAME.fullmatch(text) is not None and text.lower() not in _KEYWORDS


_KEYWORDS = {"and", "between", "false", "in", "is", "like", "not", "null", "or", "true"}
_BARE_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_OPERATORS = {operator.value: operator for operator in Operator} | {
    "==": Operator.EQUAL,
    "<>": Operator.NOT_EQUAL,
}

# SQLite ends a text at NUL and cannot take unpaired surrogates, nor can a corpus hold these.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")

# A word is any text between separators, so that 1990-05-01 is one word, and a message can suggest
# to put it in quotes.
_TOKEN = re.compile(
    r"""\s*+ (?:
      (?P<QUOTED> '(?:[^']|'')*+' | "(?:[^"]|"")*+" | `(?:[^`]|``)*+` )
    | (?P<SYMBOL> [=!<>]= | <> | [=<>(),] )
    | (?P<WORD> [^\s'"`=!<>(),]+ )
    | (?P<STRAY> ['"`!] )
    | (?P<END> \Z )
    )""",
    re.VERBOSE,
)


class _Kind(Enum):
    """The groups of `_TOKEN`."""

    QUOTED = auto()
    SYMBOL = auto()
    WORD = auto()
    STRAY = auto()
    END = auto()


class _Token(NamedTuple):
    kind: _Kind
    text: str
    column: int

    @property
    def unquoted(self) -> str:
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    def __str__(self) -> str:
        if self.kind is _Kind.END:
            return "the end"
        return reprlib.repr(self.text)


def _tokens(expression: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(expression):
        kind = _Kind[str(match.lastgroup)]
        token = _Token(kind, match[kind.name], match.start(kind.name) + 1)
        if kind is _Kind.STRAY:
            reason = "is not an operator; write != or not"
            if token.text != "!":
                reason = "is never closed"
            raise filter_error(f"the {token.text} {reason}", token.column)
        yield token


class _Parser:
    """A recursive-descent parser: one method per rule of the grammar, one token of lookahead."""

    def __init__(self, expression: str) -> None:
        self._following = _tokens(expression)
        self._token = next(self._following)
        self._nesting = 0

    def parse(self) -> Condition:
        condition = self._condition()
        if self._token.kind is not _Kind.END:
            raise self._unexpected("and, or, or the end")
        return condition

    def _condition(self) -> Condition:
        return self._chain("or", Or, self._conjunction)

    def _conjunction(self) -> Condition:
        return self._chain("and", And, self._negation)

    def _chain(
        self, keyword: str, kind: type[And | Or], operand: Callable[[], Condition]
    ) -> Condition:
        conditions = [operand()]
        while self._accept(keyword):
            conditions.append(operand())
        return kind(tuple(conditions)) if len(conditions) > 1 else conditions[0]

    def _negation(self) -> Condition:
        if self._accept("not"):
            return Not(self._nested(self._negation))
        if self._accept("("):
            condition = self._nested(self._condition)
            self._expect(")")
            return condition
        return self._test()

    def _nested(self, rule: Callable[[], Condition]) -> Condition:
        if self._nesting == MAX_NESTING:
            raise filter_error(f"nested deeper than {MAX_NESTING} levels", self._token.column)
        self._nesting += 1
        condition = rule()
        self._nesting -= 1
        return condition

    def _test(self) -> Condition:
        field = self._field()
        if self._token.text in _OPERATORS:
            return self._comparison(field)
        if self._accept("is"):
            negated = self._accept("not")
            self._expect("null")
            return Not(IsNull(field)) if negated else IsNull(field)
        negated = self._accept("not")
        test = self._membership(field)
        return Not(test) if negated else test

    def _comparison(self, field: str) -> Comparison:
        spelling = self._advance().text
        operator = _OPERATORS[spelling]
        equality = operator is Operator.EQUAL or operator is Operator.NOT_EQUAL
        read = self._value if equality else self._ordered_value
        return Comparison(field, operator, read(f"{field_text(field)} {spelling} "))

    def _membership(self, field: str) -> Condition:
        if self._accept("in"):
            return In(field, self._values())
        if self._accept("like"):
            return Like(field, self._pattern())
        if self._accept("between"):
            lowest = self._ordered_value()
            self._expect("and")
            highest = self._ordered_value()
            return And(
                (
                    Comparison(field, Operator.GREATER_OR_EQUAL, lowest),
                    Comparison(field, Operator.LESS_OR_EQUAL, highest),
                )
            )
        hint = "a field's name with spaces goes in double quotes"
        raise self._unexpected(
            "a test (=, !=, <, <=, >, >=, in, like, between, is)",
            hint if self._token.kind is _Kind.WORD else "",
        )

    def _field(self) -> str:
        token = self._token
        prefixed = token.kind is _Kind.WORD and token.text.startswith(METADATA_PREFIX)
        if prefixed and token.text != METADATA_PREFIX:
            name = metadata_name(token.text)
            if _is_bare_name(name):
                self._advance()
                return metadata_field(name)
        elif prefixed:
            self._advance()
        elif token.kind is _Kind.WORD and _is_bare_name(token.text):
            return self._advance().text
        if self._token.kind is _Kind.QUOTED and self._token.text[0] != "'":
            name = self._advance().unquoted
            return name if name in BUILT_IN_FIELDS and not prefixed else metadata_field(name)
        raise self._no_field(token)

    def _no_field(self, token: _Token) -> FilterError:
        hint = ""
        if token.kind is _Kind.QUOTED or token.kind is _Kind.WORD:
            name = token.text if token.kind is _Kind.WORD else token.unquoted
            hint = f"a field's name goes bare or in double quotes: {field_text(qualified(name))}"
        return self._unexpected("a field", hint)

    def _values(self) -> tuple[Value, ...]:
        self._expect("(")
        if self._accept(")"):
            return ()
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._expect(")")
        return tuple(values)

    def _value(self, before: str = "") -> Value:
        """Parse a literal; ``before`` is the text before it, for messages."""
        token = self._token
        if token.kind is _Kind.QUOTED and token.text[0] != "`":
            return self._advance().unquoted
        hint = ""
        if token.kind is _Kind.WORD:
            word = token.text.lower()
            if word in ("true", "false"):
                self._advance()
                return word == "true"
            number = parse_number(word)
            if number is not None:
                self._advance()
                if math.isinf(number):
                    raise filter_error(f"the number {token} is too large", token.column)
                if isinstance(number, int) and str(number) != word:
                    return SpelledNumber.of(number, word)
                return number
            if word == "null":
                hint = "null equals nothing; write 'is null' or 'is not null'"
            elif word not in _KEYWORDS:
                hint = f"put text in quotes: {before}{literal_text(token.text)}"
        raise self._unexpected("a value", hint)

    def _ordered_value(self, before: str = "") -> Value:
        token = self._token
        value = self._value(before)
        if isinstance(value, bool):
            raise filter_error(f"{token.text} has no order, only = and !=", token.column)
        return value

    def _pattern(self) -> str:
        token = self._token
        pattern = self._value()
        if not isinstance(pattern, str):
            raise filter_error(f"like takes a text in quotes, not {token}", token.column)
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            raise filter_error("the pattern ends in a backslash; write it twice", token.column)
        return pattern

    def _advance(self) -> _Token:
        token, self._token = self._token, next(self._following)
        return token

    def _accept(self, text: str) -> bool:
        """Consume the next token if it is this keyword or symbol; returns whether it was."""
        found = self._token.text.lower() == text
        if found:
            self._advance()
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(text)

    def _unexpected(self, expected: str, hint: str = "") -> FilterError:
        reason = f"expected {expected} at column {self._token.column}, found {self._token}"
        return filter_error(f"{reason}; {hint}" if hint else reason)
