"""Times in the notations of a field."""

from __future__ import annotations

import pytest

from semsearch.stores.times import Notations, Time


@pytest.mark.parametrize(
    ("held", "given", "texts"),
    [
        ("2020-05-01T10:00:00.500Z", "2020-05-01T12:00:00.5+02:00", ["2020-05-01T10:00:00.500Z"]),
        ("2020-05-01T10:00Z", "2020-05-01T12:00:00+02:00", ["2020-05-01T10:00Z"]),
        ("2020-05-01 09:00:00+0000", "2020-05-01T10:00Z", ["2020-05-01 10:00:00+0000"]),
        ("2020-05-01 09:00:00 UTC", "2020-05-01T10:00", ["2020-05-01 10:00:00 UTC"]),
        ("2020-05-01", "2020-05-01T10:00", ["2020-05-01T10:00"]),
        ("2020-05-01", "2020-05-01T23:00-01:00", ["2020-05-02T00:00", "2020-05-02"]),
        ("2020-05-01", "2020-05-02", ["2020-05-02"]),
        ("x", "2020-05-02", ["2020-05-02"]),
        (
            "2020-05-01 09:00:00.0000000 +00:00",
            "2020-05-02",
            ["2020-05-02", "2020-05-02 00:00:00.0000000 +00:00"],
        ),
        ("0999-05-01T09:00Z", "0999-05-02", ["0999-05-02", "0999-05-02T00:00Z"]),
    ],
)
def test_a_time_in_the_notation_of_a_field(held, given, texts):
    reading = Notations([held]).reading(given)
    assert reading.texts == texts
    assert reading.is_exact
    assert reading.in_order


def test_a_time_that_a_notation_cannot_hold_becomes_the_one_before_it():
    reading = Notations(["2020-05-01T10:00:00Z"]).reading("2020-05-01T12:00:00.5Z")
    assert reading.texts == ["2020-05-01T12:00:00Z"]
    assert not reading.is_exact
    reading = Notations(["2020-05-01T10:00"]).reading("2020-05-01T12:00:59.999")
    assert reading.texts == ["2020-05-01T12:00"]
    assert not reading.is_exact


def test_values_without_an_offset_are_in_utc_if_the_others_have_several():
    held = ["2020-05-01T10:00+02:00", "2020-05-01T10:00", "2020-05-01T10:00Z"]
    for values in (held, held[::-1]):
        assert sorted(Notations(values).reading("2020-05-01T10:00Z").texts) == [
            "2020-05-01T10:00",
            "2020-05-01T10:00Z",
            "2020-05-01T12:00+02:00",
        ]


@pytest.mark.parametrize(
    ("held", "given", "in_order"),
    [
        (["2020-05-01T10:00+01:00", "2020-07-01T10:00+02:00"], "2020-05-01T10:00Z", False),
        (["2020-05-01T10:00+01:00", "2020-07-01T10:00+02:00"], "2020-05-01T10:00", True),
        (["2020-05-01T10:00Z", "2020-07-01T10:00+00:00"], "2020-05-01T10:00+01:00", True),
        (["2020-05-01T10:00", "2020-07-01 10:00"], "2020-05-01T10:00", False),
        (["2020-05-01T10:00:00Z", "2020-05-01T10:00:00.5Z"], "2020-05-01T10:00", False),
        (["2020-05-01T10:00:00+00", "2020-05-01T10:00:00.5+00"], "2020-05-01T10:00", True),
        (["2020-05-01", "2020-05-01T10:00:00.5Z"], "2020-05-01T10:00+01:00", True),
    ],
)
def test_whether_notations_sort_together(held, given, in_order):
    assert Notations(held).reading(given).in_order is in_order


@pytest.mark.parametrize("text", ["2020-13-01", "2020-05-01T24:00", "2020", "2020-05-01Z", "x"])
def test_what_is_no_time(text):
    assert Time.of(text) is None
    assert Notations(["2020-05-01T10:00Z"]).reading(text) is None


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+05:00"])
def test_times_beyond_those_of_python(text):
    assert Notations(["2020-05-01T10:00:00+02:00"]).reading(text) is None
