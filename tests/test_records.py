"""Documents: validation, metadata as JSON, names of columns."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import uuid

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlalchemy.dialects.postgresql import ranges

from semsearch import Document
from semsearch.errors import BadRowError
from semsearch.records import column_name, field_name


class Range:
    """A class of a user, whose text is no value."""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"text": ""}, "empty text"),
        ({"text": " \n\t "}, "empty text"),
        ({"text": None}, "text is not a string but missing"),
        ({"text": float("nan")}, "text is not a string but NaN"),
        ({"text": 7}, "text is not a string but 7"),
        ({"id": ""}, "empty id"),
        ({"id": " "}, "empty id"),
        ({"id": 7}, "id is not a string but 7"),
        ({"id": "a\0b"}, "id contains a NUL character"),
        ({"metadata": {"a\0b": 1}}, "the name of a metadata field contains a NUL character"),
        ({"title": 7}, "title is not a string but 7"),
        ({"text": "a \ud83d b"}, r"text holds an unpaired surrogate \(U\+D83D\)"),
        (
            {"text": b"caf\xe9".decode(errors="surrogateescape")},
            "text holds byte 0xe9.* --encoding",
        ),
        ({"metadata": {"x": "\udcff"}}, "x holds byte 0xff"),
        ({"metadata": {1: "x"}}, "metadata field 1 has no string name"),
        ({"metadata": [1]}, "metadata is not a mapping"),
        ({"metadata": {"x": {"\ud800": 1}}}, "x holds an unpaired surrogate"),
        ({"metadata": {"x": float("inf")}}, "x is infinite"),
        ({"metadata": {"x": object()}}, "x has the type object, which JSON lacks"),
        ({"metadata": {"x": Range()}}, "x has the type Range, which JSON lacks"),
    ],
)
def test_invalid_documents_are_refused(arguments, reason):
    with pytest.raises(BadRowError, match=f"^corpus.csv:7: {reason}"):
        Document(**({"id": "a", "text": "b", "source": "corpus.csv:7"} | arguments))


def test_deep_nesting_is_refused():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadRowError, match="nested deeper"):
        Document("a", "b", metadata={"x": value})
    while value:  # freed level by level, to spare the interpreter a deep recursion
        value = value.pop()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.int64(3), 3),
        (numpy.float32(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.array([1, 2]), [1, 2]),
        (numpy.float64("nan"), None),
        (numpy.longdouble("0.5"), 0.5),
        (numpy.array([0.5], numpy.longdouble), [0.5]),
        (decimal.Decimal("sNaN"), None),
        (pandas.NA, None),
        (pandas.NaT, None),
        (pandas.Timestamp("2020-01-02"), "2020-01-02T00:00:00"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (decimal.Decimal("1.5"), 1.5),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime.timedelta(days=1), "1 day, 0:00:00"),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        (pandas.Period("2020-01"), "2020-01"),
        (pandas.Interval(0, 1), "(0, 1]"),
        (ranges.Range(0, 1), "[0,1)"),
        (("a", 1), ["a", 1]),
        ({"b", "a"}, ["a", "b"]),
        ({"k": {1: numpy.int8(1)}}, {"k": {"1": 1}}),
    ],
)
def test_metadata_becomes_json(value, expected):
    found = Document("a", "b", metadata={"x": value}).metadata["x"]
    assert found == expected
    assert type(found) is type(expected)


JSON_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(some.characters(codec="utf-8")),
    lambda inner: (
        some.lists(inner) | some.dictionaries(some.text(some.characters(codec="utf-8")), inner)
    ),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_json_values_are_unchanged(value):
    assert json.dumps(Document("a", "b", metadata={"x": value}).metadata) == json.dumps(
        {"x": value}
    )


def test_source_is_ignored_in_comparisons():
    assert Document("a", "b", source="x:1") == Document("a", "b", source="y:2")


def test_documents_are_hashable():
    one, other = (Document("a", "text", metadata={"n": number}) for number in (1, 2))
    assert {one, other, Document("a", "text", metadata={"n": 1})} == {one, other}


def test_keys_that_are_equal_in_json_are_refused():
    with pytest.raises(BadRowError, match="x has two keys that are one in JSON: \\[1, '1'\\]"):
        Document("a", "text", metadata={"x": {1: "a", "1": "b"}})


@pytest.mark.parametrize("name", ["id", "year", "metadata.id", "metadata.year", "metadata.", ""])
def test_column_names_map_back_to_fields(name):
    taken = ("id", "text")
    column = column_name(name, taken)
    assert column not in taken
    assert field_name(column, taken) == name


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (numpy.datetime64("2020-05-01T10:30", "ns"), "2020-05-01T10:30:00"),
        (numpy.datetime64("2020-05-01", "D"), "2020-05-01"),
        (numpy.datetime64("NaT", "ns"), None),
        (numpy.timedelta64(5, "ns"), "0:00:00"),
        (numpy.timedelta64(90_000_000_000, "ns"), "0:01:30"),
        (numpy.array(["2020-05-01"], "datetime64[ns]"), ["2020-05-01T00:00:00"]),
        (numpy.datetime64("1970-01-02", "ps"), "1970-01-02T00:00:00"),
        (numpy.array(["2020-05-01"], "datetime64[D]"), ["2020-05-01"]),
        (
            pandas.Series(pandas.to_datetime(["2020-05-01"], utc=True)),
            ["2020-05-01T00:00:00+00:00"],
        ),
        ([numpy.datetime64("2020-05-01", "ns")], ["2020-05-01T00:00:00"]),
    ],
)
def test_dates_of_numpy_become_text(value, stored):
    assert Document("a", "text", metadata={"when": value}).metadata == {"when": stored}
