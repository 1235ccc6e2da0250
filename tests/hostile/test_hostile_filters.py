"""Any text as a filter selects documents or raises a one-line FilterError."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.filters import parse
from semsearch.stores.filtering import read_filter
from semsearch.stores.protocol import Selection

pytestmark = pytest.mark.slow

deterministic = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

DOCUMENTS = [
    Document("1", "One.", "First", {"year": 1990, "tags": ["a", "b"], "a b": None, 'q"': "'"}),
    Document("2", "Two.", None, {"year": 2.5, "tags": "a", "rank": {"x": [1]}, "true": True}),
    Document("3", "Three.", "'; DROP TABLE documents; --", {"year": "1990", "año": -1}),
]

PIECES = st.sampled_from(
    [
        *("year", "tags", '"a b"', '"q"""', "`rank`", "title", "id", '"true"', "año", "nothing"),
        *("=", "==", "!=", "<>", "<", "<=", ">", ">=", "in", "like", "between", "is", "null"),
        *(
            "and",
            "or",
            "not",
            "(",
            ")",
            ",",
            "'a'",
            "'%_\\%'",
            "'\\'",
            "''",
            "''''",
            "true",
            "TRUE",
        ),
        *("1990", "-1", "2.5", "1e308", "1e999", "9223372036854775807", "9223372036854775808"),
        *(
            "'",
            '"',
            "`",
            "!",
            ";",
            "--",
            "/*",
            "?",
            ":x",
            "@x",
            "$x",
            "\\",
            "\0",
            "\ud800",
            "\x1b[2J",
        ),
        *("\u202e", "٣", "½", "x'00'", "1990-05-01", "0x10", "1_000", "nan", "inf", "+", "."),
    ]
)
TYPED = (
    st.text(max_size=60)
    | st.text(st.characters(), max_size=30)
    | st.lists(PIECES | st.text(max_size=3), max_size=25).map(" ".join)
    | st.lists(PIECES, max_size=25).map("".join)
)
#: Conditions that are valid far more often.
TEST = st.builds(
    "{} {} {}".format,
    st.sampled_from(["year", "tags", '"a b"', '"q"""', "rank", "title", "id", "año"]),
    st.sampled_from(["=", "!=", "<", ">=", "like", "not like"]),
    st.text(max_size=8).map(lambda text: "'{}'".format(text.replace("'", "''")))
    | st.integers(-(2**64), 2**64).map(str)
    | st.floats().map(str),
) | st.sampled_from(["year is null", "tags in ()", "year in (1990, 'a', true)", "id in ('1')"])
CONDITION = st.recursive(
    TEST,
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("{} or {}".format, inner, inner)
        | inner.map("not ({})".format)
    ),
    max_leaves=30,
)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    with Index.create(tmp_path_factory.mktemp("filters") / "index", ["hashing"]) as index:
        index.add(DOCUMENTS)
        with index.read() as state:
            yield state


def found(state, expression: str) -> list[str] | str:
    """The ids of the documents that match a filter, or the message of the FilterError."""
    try:
        condition = parse(expression)
        assert parse(str(condition)) == condition
        return state.ids(Selection(condition=read_filter(state, expression).condition))
    except FilterError as error:
        message = str(error)
    assert message.isprintable()
    assert len(message) < 600
    return message


@settings(deterministic, max_examples=400)
@given(TYPED)
@example("(" * 100_000)
@example("not " * 25_000)
@example("year = 1 or " * 8_000 + "year = 1")
@example("year in (" + "1," * 45_000 + "1)")
@example("year = " + "9" * 90_000)
@example("title like '" + "%_" * 40_000 + "'")
@example("'" * 100_001)
def test_any_text(state, expression):
    found(state, expression)


@settings(deterministic, max_examples=150)
@given(CONDITION)
def test_negation_selects_the_other_documents(state, expression):
    result = found(state, expression)
    if isinstance(result, list):
        rest = found(state, f"not ({expression})")
        assert isinstance(rest, str) or sorted(result + rest) == ["1", "2", "3"]
