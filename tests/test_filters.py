"""The `where` language: parsing, printing, and messages for invalid expressions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semsearch.errors import FilterError
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
    conjunction,
    fields,
    parse,
)
from semsearch.records import metadata_field

A, B, C = (Comparison(name, Operator.EQUAL, 1) for name in "abc")


def value(literal: str) -> object:
    condition = parse(f"a = {literal}")
    assert isinstance(condition, Comparison)
    return condition.value


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("a=1", A),
        ("\n a\t= 1 ", A),
        ("a != 1", Comparison("a", Operator.NOT_EQUAL, 1)),
        ("a <> 1", Comparison("a", Operator.NOT_EQUAL, 1)),
        ("a < 1", Comparison("a", Operator.LESS, 1)),
        ("a <= 1", Comparison("a", Operator.LESS_OR_EQUAL, 1)),
        ("a > 1", Comparison("a", Operator.GREATER, 1)),
        ("a >=-1", Comparison("a", Operator.GREATER_OR_EQUAL, -1)),
        ("a in (1, 'x', true)", In("a", (1, "x", True))),
        ("a not in (1)", Not(In("a", (1,)))),
        ("a in ()", In("a", ())),
        ("a like 'x%'", Like("a", "x%")),
        ("a not like 'x%'", Not(Like("a", "x%"))),
        ("a is null", IsNull("a")),
        ("a IS Not NULL", Not(IsNull("a"))),
        (
            "a between 1 and 2",
            And(
                (
                    Comparison("a", Operator.GREATER_OR_EQUAL, 1),
                    Comparison("a", Operator.LESS_OR_EQUAL, 2),
                )
            ),
        ),
        ("not a between 1 and 2 and b = 1", And((Not(parse("a between 1 and 2")), B))),
        ("a not between 1 and 2", Not(parse("a between 1 and 2"))),
        ("a = 1 or b = 1 and c = 1", Or((A, And((B, C))))),
        ("(a = 1 or b = 1) and c = 1", And((Or((A, B)), C))),
        ("a = 1 or b = 1 or c = 1", Or((A, B, C))),
        ("a = 1 or (b = 1 or c = 1)", Or((A, Or((B, C))))),
        ("not a = 1 and b = 1", And((Not(A), B))),
        ("not (a = 1 AND b = 1)", Not(And((A, B)))),
        ("not not a = 1", Not(Not(A))),
        ("((a = 1))", A),
        ('"release date" is null', IsNull("release date")),
        ("`release date` is null", IsNull("release date")),
        ('"a ""b"" `c`" is null', IsNull('a "b" `c`')),
        ('`a ``b`` "c"` is null', IsNull('a `b` "c"')),
        ('"in" is null', IsNull("in")),
        ('"" is null', IsNull("")),
        ("größe_2 is null", IsNull("größe_2")),
        ("年 is null", IsNull("年")),
        ("metadata.year = 1 or metadata.`a` = 1", Or((Comparison("year", Operator.EQUAL, 1), A))),
        ("metadata.id is null", IsNull("metadata.id")),
        ('metadata."title" is null', IsNull("metadata.title")),
        ('"id" is null', IsNull("id")),
        ('"metadata.id" is null', IsNull("metadata.metadata.id")),
        ('metadata."metadata.id" is null', IsNull("metadata.metadata.id")),
        ('metadata."a b" is null', IsNull("a b")),
        ("metadata is null", IsNull("metadata")),
    ],
)
def test_expressions(expression, condition):
    assert parse(expression) == condition


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'x'", "x"),
        ('"x"', "x"),
        ("'it''s'", "it's"),
        ('"a ""b"""', 'a "b"'),
        ("''", ""),
        ("''''", "'"),
        ("'a\\b\n%'", "a\\b\n%"),
        ("1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e-3", -0.0015),
        ("1E3", 1000.0),
        ("1e-999", 0.0),
        ("TRUE", True),
        ("false", False),
    ],
)
def test_literals(literal, expected):
    assert (type(value(literal)), value(literal)) == (type(expected), expected)


@pytest.mark.parametrize(("literal", "number"), [("+1", 1), ("-01", -1), ("0" * 5000 + "1", 1)])
def test_numbers_in_another_spelling(literal, number):
    found = value(literal)
    assert (found, found.spelling) == (number, literal)


QUOTE_TEXT = "put text in quotes: genres = "


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "expected a field at column 1, found the end"),
        ("  ", "expected a field at column 3, found the end"),
        ("genres=Drama", f"expected a value at column 8, found 'Drama'; {QUOTE_TEXT}'Drama'"),
        ("genres = 1990-05-01", f"found '1990-05-01'; {QUOTE_TEXT}'1990-05-01'"),
        ("genres in (Drama)", "put text in quotes: 'Drama'"),
        ("a = null", "expected a value at column 5, found 'null'; null equals nothing; write"),
        ("a = ", "expected a value at column 5, found the end"),
        ("a = and", "expected a value at column 5, found 'and'"),
        ("a = `x`", "expected a value at column 5, found '`x`'"),
        ("a is 1", "expected null at column 6, found '1'"),
        ("a", "expected a test (=, !=, <, <=, >, >=, in, like, between, is) at column 2"),
        ("a not = 1", "at column 7, found '='"),
        ("release date = 1", "found 'date'; a field's name with spaces goes in double quotes"),
        ("release-date = 1", 'goes bare or in double quotes: "release-date"'),
        ("in = 1", 'goes bare or in double quotes: "in"'),
        ("'a' = 1", "goes bare or in double quotes: a"),
        ("1990 < year", "expected a field at column 1, found '1990'"),
        ("(a = 1", "expected ) at column 7, found the end"),
        ("a = 1)", "expected and, or, or the end at column 6, found ')'"),
        ("a = 1 b = 2", "expected and, or, or the end at column 7, found 'b'"),
        ("a between 1 or 2", "expected and at column 13, found 'or'"),
        ("a in (1,)", "expected a value at column 9, found ')'"),
        ("a in 1", "expected ( at column 6, found '1'"),
        ("a ! 1", "the ! is not an operator; write != or not (column 3)"),
        ("a = 'it''s", "the ' is never closed (column 5)"),
        ('"a = 1', 'the " is never closed (column 1)'),
        ("a < true", "true has no order, only = and != (column 5)"),
        ("a between 1 and false", "false has no order, only = and != (column 17)"),
        ("a like 1", "like takes a text in quotes, not '1' (column 8)"),
        (r"a like 'x\'", "the pattern ends in a backslash; write it twice (column 8)"),
        ("a = 1e999", "the number '1e999' is too large (column 5)"),
        ("a = 9223372036854775808", "the number '9223372036854775808' is too large (column 5)"),
        ("a = -9223372036854775809", "is too large (column 5)"),
        ("a = " + "9" * 5000, "is too large (column 5)"),
        ("a = '\0'", "no text contains the character U+0000 (column 6)"),
        ("a = '\ud83d'", "no text contains the character U+D83D (column 6)"),
    ],
)
def test_mistakes(expression, message):
    with pytest.raises(FilterError) as caught:
        parse(expression)
    assert str(caught.value).startswith("where: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("opening", "closing", "levels"), [("(", ")", 100), ("not ", "", 100), ("not (", ")", 50)]
)
def test_nesting_is_limited(opening, closing, levels):
    parse(opening * levels + "a = 1" + closing * levels)
    with pytest.raises(FilterError, match="nested deeper than 100 levels"):
        parse(opening * (levels + 1) + "a = 1" + closing * (levels + 1))
    with pytest.raises(FilterError, match="nested deeper than 100 levels"):
        parse(opening * 10_000)


def test_a_long_chain_is_flat():
    chain = parse(" or ".join(f"a = {number}" for number in range(5_000)))
    assert isinstance(chain, Or)
    assert len(chain.conditions) == 5_000
    assert parse(str(chain)) == chain


def test_length_is_limited():
    assert value(f"'{'x' * 99_994}'") == "x" * 99_994
    with pytest.raises(FilterError, match="longer than 100,000 characters"):
        parse(f"a = '{'x' * 99_995}'")


def test_fields():
    assert fields(parse("a = 1 and (b in (1) or not c like 'x') and a is null")) == {"a", "b", "c"}


PIECES = [
    *(
        "a",
        "id",
        "metadata.id",
        "metadata.",
        '"metadata.id"',
        "metadata.a.b",
        "1",
        "-1.5e3",
        "'x'",
        '"y y"',
        "`z`",
        "'",
        "=",
        "<>",
        "!",
        "(",
        ")",
        ",",
        "\\",
        "\n",
    ),
    *("not", "and", "or", "in", "like", "is", "null", "between", "true", "\0", "\ud800"),
]


def read(expression: str) -> Condition | FilterError:
    try:
        return parse(expression)
    except FilterError as error:
        return error


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_invalid_expression_is_refused_in_one_line(expression):
    outcome = read(expression)
    if isinstance(outcome, FilterError):
        assert str(outcome).isprintable()
    else:
        assert parse(str(outcome)) == outcome


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ordered = (
    texts | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
literals = ordered | st.booleans()
names = (
    st.sampled_from(["year", "in", "Null", "release date", 'a"b', "ſ", "", "metadata.", "id"])
    | texts
).map(metadata_field) | st.sampled_from(["id", "title"])
equality = st.sampled_from([Operator.EQUAL, Operator.NOT_EQUAL])
conditions = st.recursive(
    st.builds(Comparison, names, equality, literals)
    | st.builds(Comparison, names, st.sampled_from(Operator), ordered)
    | st.builds(In, names, st.lists(literals, max_size=3).map(tuple))
    | st.builds(Like, names, texts.filter(lambda text: not text.endswith("\\")))
    | st.builds(IsNull, names),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(conditions)
def test_printed_condition_parses_to_itself(condition):
    # Compared as text: 1, 1.0 and True are equal in Python.
    assert repr(parse(str(condition))) == repr(condition)


def test_printing_uses_as_few_parentheses_as_possible():
    expression = "a = 1 or not (b = 1 and c in ('x', 2.5)) and (\"d e\" is null or true_ like '%')"
    assert str(parse(expression)) == expression


def test_a_conjunction_requires_both():
    assert conjunction(None, None) is None
    assert conjunction("a = 1", None) == conjunction(None, "a = 1") == "a = 1"
    assert conjunction("a = 1 or b = 2", "c = 3") == "(a = 1 or b = 2) and c = 3"
    assert conjunction("code = 007", "n in (+7, 7)") == "code = 007 and n in (+7, 7)"
    with pytest.raises(FilterError):
        conjunction("a = 1) or (a = 2", "c = 3")
