"""Terms of values: equal and ordered as the values are, and written in plain characters only."""

from __future__ import annotations

import json
import re

from conditions_model import kind, like
from hypothesis import given
from hypothesis import strategies as st

from semsearch.filters import And, Comparison, IsNull, Operator
from semsearch.stores.milvus.conditions import like_pattern, to_expression
from semsearch.stores.milvus.terms import (
    ORDER_CHARACTERS,
    document_terms,
    field_key,
    order_code,
    term,
)

texts = st.text(max_size=30) | st.text("aAé😀\0", max_size=3)
integers = st.integers(-(2**63), 2**63 - 1)
numbers = (
    integers
    | st.floats(allow_nan=False)
    | st.builds(
        lambda near, off: near + off, st.sampled_from([2**53, 2**62, -(2**61)]), st.integers(-3, 3)
    )
    | st.integers(-3, 3).map(float)
)
values = texts | numbers | st.booleans()


@given(values, values)
def test_equal_values_have_equal_terms(left, right):
    assert (term(left) == term(right)) == (kind(left) is kind(right) and left == right)


@given(numbers, numbers)
def test_numbers_are_ordered_by_value(left, right):
    assert (order_code(left) < order_code(right)) == (left < right)


@given(texts, texts)
def test_texts_are_ordered_by_code_point(left, right):
    assert (order_code(left) < order_code(right)) == (left < right)


@given(
    st.text("aAbBéKK%_\\\n", max_size=6),
    st.lists(st.sampled_from(["%", "_", "a", "B", "é", "\\%", "\\\\"]), max_size=5),
)
def test_like(text, pieces):
    pattern = "".join(pieces)
    assert (like_pattern(pattern).fullmatch(text) is not None) == like(text, pattern)


def test_the_terms_of_a_document():
    terms = document_terms(
        "7", None, json.dumps({"id": "z", "g": ["B", "A", None], "e": [], "n": None})
    )
    assert terms["id"] == ["x", "t:37", "t"]
    assert terms["g"] == ["x", "t:42", "t:41", "t"]
    assert (terms["g:t0"], terms["g:t1"]) == ("41", "42")
    assert terms["e"] == ["x"]
    assert terms[field_key("metadata.id")] == ["x", "t:7a", "t"]
    assert not {"n", "title"} & terms.keys()


@given(st.text(min_size=1), values)
def test_expressions_contain_no_user_input(name, value):
    """Every filter's expression consists of these pieces only: nothing needs escaping."""
    condition = And((Comparison(name, Operator.EQUAL, value), IsNull(name)))
    if isinstance(value, str) and len(value) < ORDER_CHARACTERS:
        condition = And((condition, Comparison(name, Operator.LESS, value)))
    expression = to_expression(condition, lambda field, pattern: [])
    contains = r'json_contains_any\(fields\["[\w~]+"\], \["[a-z0-9:]+"\]\)'
    less = r'fields\["[\w~:]+"\] < "[0-9a-f]*"'
    assert re.fullmatch(rf"({contains}|{less}|and|not|[() ])+", expression, re.ASCII)
