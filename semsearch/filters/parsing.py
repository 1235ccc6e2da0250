"""Parsing of expressions: a recursive-descent parser for the grammar of `semsearch.filters`."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from semsearch.errors import BadRowError, FilterError, check_text, shown
from semsearch.filters import (
    KEYWORDS,
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
    is_bare_name,
    literal_text,
)
from semsearch.records import BUILT_IN_FIELDS, Document, Where, metadata_field, metadata_name


def parse(expression: str) -> Condition:
    """Parse an expression.

    Raises:
        FilterError: it is invalid; the message has the column and what was expected.
        ArgumentError: it is not a string.
    """
    check_text("where", expression)
    if unusable := _UNUSABLE.search(expression):
        raise filter_error(f"no text contains U+{ord(unusable[0]):04X}", unusable.start() + 1)
    try:
        return _Parser(expression).parse()
    except RecursionError:
        raise filter_error("the expression is nested too deep") from None


def condition_of(where: Where) -> Condition:
    """The condition of an expression, or of a dict: each field has its value, or one of a list.

    Raises:
        FilterError: the expression is invalid, the dict is empty, or a value has no literal.
        ArgumentError: it is neither a string nor a dict.
    """
    if not isinstance(where, Mapping):
        return parse(where)
    try:
        values = Document(None, "-", None, where).metadata  # numpy's numbers, dates, sets
    except BadRowError as error:
        raise filter_error(error.reason) from None
    tests = tuple(_required(name, value) for name, value in values.items())
    if not tests:
        raise filter_error("the dict is empty; None stands for no filter")
    return parse(str(And(tests)))


def _required(name: str, value: Any) -> Condition:
    field = name if name in BUILT_IN_FIELDS else metadata_field(metadata_name(name))
    if value is None:
        return IsNull(field)
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) for one in values):
        raise filter_error(f"{field_text(field)} cannot equal {shown(value)}; use an expression")
    return In(field, tuple(values)) if values is value else Comparison(field, Operator.EQUAL, value)


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_OPERATORS = {operator.value: operator for operator in Operator}
_OPERATORS |= {"==": Operator.EQUAL, "<>": Operator.NOT_EQUAL}

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


class _Token(NamedTuple):
    kind: str  #: a group of `_TOKEN`
    text: str
    column: int

    @property
    def unquoted(self) -> str:
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    def __str__(self) -> str:
        return "the end" if self.kind == "END" else reprlib.repr(self.text)


def _tokens(expression: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(expression):
        kind = str(match.lastgroup)
        text, column = match[kind], match.start(kind) + 1
        if kind == "STRAY":
            reason = "is not an operator; write != or not" if text == "!" else "is never closed"
            raise filter_error(f"the {text} {reason}", column)
        yield _Token(kind, text, column)


def _number(token: _Token) -> int | float:
    is_whole = token.text.lstrip("+-").isdigit() and len(token.text) < 100
    number = int(token.text) if is_whole else float(token.text)
    if math.isinf(number) or (is_whole and not -(2**63) <= number < 2**63):
        raise filter_error(f"the number {token} is too large", token.column)
    return number


class _Parser:
    """A recursive-descent parser: one method per rule of the grammar, one token of lookahead."""

    def __init__(self, expression: str) -> None:
        self._following = _tokens(expression)
        self._token = next(self._following)

    def parse(self) -> Condition:
        condition = self._condition()
        if self._token.kind != "END":
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
            return Not(self._negation())
        if self._accept("("):
            condition = self._condition()
            self._expect(")")
            return condition
        return self._test()

    def _test(self) -> Condition:
        field = self._field()
        if operator := _OPERATORS.get(self._token.text):
            self._advance()
            return Comparison(field, operator, self._value(ordered=operator.is_order))
        is_null = self._accept("is")
        negated = self._accept("not")
        test: Condition
        if is_null:
            self._expect("null")
            test = IsNull(field)
        elif self._accept("in"):
            test = In(field, self._values())
        elif self._accept("like"):
            test = Like(field, self._pattern())
        elif self._accept("between"):
            low = Comparison(field, Operator.GREATER_OR_EQUAL, self._value(ordered=True))
            self._expect("and")
            high = Comparison(field, Operator.LESS_OR_EQUAL, self._value(ordered=True))
            test = And((low, high))
        else:
            hint = "a name with spaces goes in double quotes"
            raise self._unexpected("a test (=, !=, <, <=, >, >=, in, like, between, is)", hint)
        return Not(test) if negated else test

    def _field(self) -> str:
        token = self._token
        name = metadata_name(token.text)
        if token.kind == "WORD" and is_bare_name(name):
            self._advance()
            return name if name == token.text else metadata_field(name)
        if token.kind == "QUOTED" and not token.text.startswith("'"):
            name = self._advance().unquoted
            return name if name in BUILT_IN_FIELDS else metadata_field(name)
        raise self._unexpected("a field", "its name goes bare or in double quotes")

    def _values(self) -> tuple[Value, ...]:
        self._expect("(")
        values: list[Value] = []
        while not self._accept(")"):
            if values:
                self._expect(",")
            values.append(self._value())
        return tuple(values)

    def _value(self, *, ordered: bool = False) -> Value:
        """Parse a literal; one that is compared by order is no boolean."""
        token, word = self._token, self._token.text.lower()
        value: Value
        if token.kind == "QUOTED" and token.text[0] != "`":
            value = token.unquoted
        elif word in ("true", "false") and not ordered:
            value = word == "true"
        elif _NUMBER.fullmatch(word):
            value = _number(token)
        else:
            raise self._no_value(word)
        self._advance()
        return value

    def _no_value(self, word: str) -> FilterError:
        hint = ""
        if word == "null":
            hint = "null equals nothing; write 'is null' or 'is not null'"
        elif word in ("true", "false"):
            hint = f"{word} has no order, only = and !="
        elif self._token.kind == "WORD" and word not in KEYWORDS:
            hint = f"put text in quotes: {literal_text(self._token.text)}"
        return self._unexpected("a value", hint)

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
