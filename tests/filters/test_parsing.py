"""The `where` language: parsing, printing, and messages for invalid expressions."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.filters import And, Comparison, In, IsNull, Like, Not, Operator, Or
from semsearch.filters.checking import check
from semsearch.filters.parsing import parse
from semsearch.records import metadata_field
from semsearch.storage.interface import Selection

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
        (r"a like 'x\\'", Like("a", r"x\\")),
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
        ("not a = 1 and b = 1", And((Not(A), B))),
        ("not (a = 1 AND b = 1)", Not(And((A, B)))),
        ('"release date" is null', IsNull("release date")),
        ("`release date` is null", IsNull("release date")),
        ('"a ""b"" `c`" is null', IsNull('a "b" `c`')),
        ('`a ``b`` "c"` is null', IsNull('a `b` "c"')),
        ('"" is null', IsNull("")),
        ("größe_2 is null", IsNull("größe_2")),
        ("metadata.year = 1 or metadata.a = 1", Or((Comparison("year", Operator.EQUAL, 1), A))),
        ("metadata.id is null", IsNull("metadata.id")),
        ("metadata.title is null", IsNull("metadata.title")),
        ('"metadata.id" is null', IsNull("metadata.metadata.id")),
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
        ("''''", "'"),
        ("'a\\b\n%'", "a\\b\n%"),
        ("1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5e-3", -0.0015),
        ("1e-999", 0.0),
        ("TRUE", True),
        ("false", False),
    ],
)
def test_literals(literal, expected):
    assert (type(value(literal)), value(literal)) == (type(expected), expected)


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("", 1),
        ("  ", 3),
        ("genres=Drama", 8),
        ("genres in (Drama)", 12),
        ("a = null", 5),
        ("a = `x`", 5),
        ("a", 2),
        ("a not = 1", 7),
        ("a in 1", 6),
        ("release date = 1", 9),
        ("metadata.'a' = 1", 1),
        ('metadata."a b" = 1', 1),
        ("in = 1", 1),
        ("'a' = 1", 1),
        ("(a = 1", 7),
        ("a = 1)", 6),
        ("a between 1 or 2", 13),
        ("a in (1,)", 9),
        ("a ! 1", 3),
        ("a = 'it''s", 5),
        ('"a = 1', 1),
        ("a < true", 5),
        ("a between 1 and false", 17),
        ("a like 1", 8),
        ("a like `x`", 8),
        (r"a like 'x\'", 8),
        (r"a like 'x\\\'", 8),
        ("a = 1e999", 5),
        ("a = 9223372036854775808", 5),
        ("a = -9223372036854775809", 5),
        ("a = " + "9" * 5000, 5),
        ("a = '\0'", 6),
        ("a = '\ud83d'", 6),
    ],
)
def test_mistakes(expression, column):
    with pytest.raises(FilterError, match=rf"\bcolumn {column}\b"):
        parse(expression)


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("not ", ""), ("not (", ")")])
def test_nesting_is_limited(opening, closing):
    parse(opening * 50 + "a = 1" + closing * 50)
    with pytest.raises(FilterError):
        parse(opening * 10_000)


def test_a_long_chain_is_flat():
    chain = parse(" or ".join(f"a = {number}" for number in range(5_000)))
    assert isinstance(chain, Or)
    assert len(chain.conditions) == 5_000
    assert parse(str(chain)) == chain


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


def pairs(inner):
    """Conjunctions and disjunctions of two or three conditions."""
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(And, several) | st.builds(Or, several)


conditions = st.recursive(
    st.builds(Comparison, names, equality, literals)
    | st.builds(Comparison, names, st.sampled_from(Operator), ordered)
    | st.builds(In, names, st.lists(literals, max_size=3).map(tuple))
    | st.builds(Like, names, texts.filter(lambda text: not text.endswith("\\")))
    | st.builds(IsNull, names),
    lambda inner: st.builds(Not, inner) | pairs(inner),
    max_leaves=8,
)


@settings(max_examples=120)
@given(conditions)
def test_printed_condition_parses_to_itself(condition):
    # Compared as text: 1, 1.0 and True are equal in Python.
    assert repr(parse(str(condition))) == repr(condition)


def test_printing_uses_as_few_parentheses_as_possible():
    expression = "a = 1 or not (b = 1 and c in ('x', 2.5)) and (\"d e\" is null or true_ like '%')"
    assert str(parse(expression)) == expression


PIECES = st.sampled_from(
    ["year", "tags", '"a b"', '"q"""', "`rank`", "metadata.", "id", '"true"', "año", "=", "<>"]
    + ["!", "in", "like", "between", "is", "null", "and", "or", "not", "(", ")", ",", "'a'"]
    + ["'%_\\%'", "'\\'", "''''", "true", "1990", "-1.5e3", "1e999", "9223372036854775808"]
    + ["'", '"', "`", ";", "--", "?", ":x", "\\", "\0", "\ud800", "\x1b[2J", "\u202e", "٣", "½"]
)
DOCUMENTS = [
    Document("1", "One.", "First", {"year": 1990, "tags": ["a", "b"], "a b": None, 'q"': "'"}),
    Document("2", "Two.", None, {"year": 2.5, "tags": "a", "rank": {"x": [1]}, "true": True}),
    Document("3", "Three.", "'; DROP TABLE documents; --", {"year": "1990", "año": -1}),
]


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    with Index.create(tmp_path_factory.mktemp("filters") / "x", ["hashing:8"]) as index:
        index.add(DOCUMENTS)
        with index.read() as state:
            yield state


@settings(max_examples=120)
@given(
    st.text(max_size=60)
    | st.lists(PIECES | st.text(max_size=3), max_size=25).map(" ".join)
    | st.lists(PIECES, max_size=25).map("".join)
)
@example("(" * 100_000)
@example("not " * 25_000)
@example("year = 1 or " * 8_000 + "year = 1")
@example("year in (" + "1," * 45_000 + "1)")
def test_any_text_selects_documents_or_is_refused(state, expression):
    try:
        condition = parse(expression)
        assert parse(str(condition)) == condition
        state.ids(Selection(condition=check(condition, state.fields())))
    except FilterError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 600
