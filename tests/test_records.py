"""Documents: validation, metadata as JSON, names of columns."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy
import pandas
import pytest

from semsearch import Document
from semsearch.corpus.documents import field_name
from semsearch.errors import BadRowError
from semsearch.records import Hit, Passage, column_name


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": ""},
        {"text": " \n\t "},
        {"text": None},
        {"text": float("nan")},
        {"text": 7},
        {"text": "a \ud83d b"},
        {"text": b"caf\xe9".decode(errors="surrogateescape")},
        {"id": "a\0b"},
        {"id": ""},
        {"id": " "},
        {"id": 7},
        {"title": 7},
        {"metadata": [1]},
    ],
)
def test_invalid_documents_are_refused(arguments):
    (field,) = arguments
    with pytest.raises(BadRowError, match=f"^corpus.csv:7: .*{field}"):
        Document(**({"id": "a", "text": "b", "source": "corpus.csv:7"} | arguments))


@pytest.mark.parametrize("value", ["\udcff", {"\ud800": 1}, float("inf")])
def test_invalid_metadata_is_refused(value):
    with pytest.raises(BadRowError, match="^corpus.csv:7: year "):
        Document("a", "b", metadata={"year": value}, source="corpus.csv:7")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.int64(3), 3),
        (numpy.array([1, 2]), [1, 2]),
        (numpy.float64("nan"), None),
        (decimal.Decimal("sNaN"), None),
        (pandas.NA, None),
        (pandas.NaT, None),
        (pandas.Timestamp("2020-01-02"), "2020-01-02T00:00:00"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (decimal.Decimal("1.5"), 1.5),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (numpy.datetime64("2020-05-01T10:30", "ns"), "2020-05-01T10:30:00"),
        (numpy.datetime64("NaT", "ns"), None),
        (numpy.timedelta64(90_000_000_000, "ns"), "0:01:30"),
        (numpy.array(["2020-05-01"], "datetime64[ns]"), ["2020-05-01T00:00:00"]),
        (("a", None, True, 1.5), ["a", None, True, 1.5]),
        ({"b", "a"}, ["a", "b"]),
        ({"k": {1: numpy.int8(1)}}, {"k": {"1": 1}}),
    ],
)
def test_metadata_becomes_json(value, expected):
    found = Document("a", "b", metadata={"x": value}).metadata["x"]
    assert found == expected
    assert type(found) is type(expected)


def test_documents_are_compared_without_their_source():
    assert Document("a", "b", source="x:1") == Document("a", "b", source="y:2")
    one, other = (Document("a", "text", metadata={"n": number}) for number in (1, 2))
    assert {one, other, Document("a", "text", metadata={"n": 1})} == {one, other}


@pytest.mark.parametrize("name", ["id", "year", "metadata.id", "metadata.year", "metadata.", ""])
def test_column_names_map_back_to_fields(name):
    taken = ("id", "text")
    column = column_name(name, taken)
    assert column not in taken
    assert field_name(column, taken) == name


def test_a_hit_gives_its_id_and_its_metadata_by_name() -> None:
    hit = Hit(1, 0.5, "a", Passage(1, "a", 0, 3, "cat"), "cat", {"year": 1995})
    assert hit.id == "a"
    assert hit["year"] == 1995
    assert (hit[0], hit[1:3], tuple(hit)[2]) == (1, (0.5, "a"), "a")
    with pytest.raises(KeyError):
        hit["genre"]
