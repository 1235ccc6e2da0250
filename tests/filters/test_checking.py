"""Filters against the fields of an index: unknown fields, and literals that no value equals."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.errors import FilterError
from semsearch.filters.checking import check
from semsearch.filters.parsing import parse
from semsearch.records import Kind

FIELDS = {
    "year": {Kind.NUMBER},
    "genres": {Kind.TEXT, Kind.LIST, Kind.NULL},
    "seen": {Kind.BOOLEAN},
    "on": {Kind.DATE},
    "published": {Kind.DATE, Kind.TEXT},
    "mixed": {Kind.NUMBER, Kind.TEXT},
    "maker": {Kind.OBJECT},
    "nothing": {Kind.NULL},
    "deleted": set(),
    "id": {Kind.NUMBER},
}


@pytest.mark.parametrize(
    "where",
    [
        "id = '1' and title like 'Film %' and metadata.id = 1",
        "year > 2004 and year != 2006.0",
        "genres in ('Drama', 'Horror') and seen = true",
        "on > '2004' and on <= '2006-05' and on < '2006-05-01T10:00Z' and on like '2004%'",
        "on != '' and on not in ('unknown', '2000-05-01')",
        "published > 'n' and published < '2009-01-01'",
        "mixed = 1 or mixed = '2' or mixed > 8",
        "nothing is null and nothing != 1 and not nothing = 'x' and deleted < 1",
        "maker is not null",
    ],
)
def test_literals_of_the_kinds_of_a_field(where):
    assert check(parse(where), FIELDS) == parse(where)


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("id = 7", "id"),
        ("year = '1995'", "year"),
        ("year in (2001, true)", "year"),
        ("year like '20%'", "year"),
        ("genres > 1", "genres"),
        ("seen = 1", "seen"),
        ("on > 2004", "on"),
        ("on > '01/05/2004'", "on"),
        ("mixed = true", "mixed"),
        ("maker = 'Ann'", "maker"),
        ("seen = true and (id = '1' or not year < 'x')", "year"),
    ],
)
def test_literals_that_a_field_never_holds_are_refused(where, field):
    with pytest.raises(FilterError, match=rf"^{field} holds ") as caught:
        check(parse(where), FIELDS)
    held = {Kind.TEXT} if field == "id" else FIELDS[field]
    assert ("quotes" in str(caught.value)) == (Kind.TEXT in held)


@pytest.mark.parametrize(
    ("expression", "known", "named"),
    [
        ("yeer = 1", ["year", "genres", "cast"], r"'yeer'.* year .*cast, genres, id, title, year"),
        ("not (id = '1' or YEAR = 1)", ["year"], "'YEAR'.* year "),
        ("x = 1", [f"field{n}" for n in range(1000)], "…$"),
    ],
)
def test_an_unknown_field_is_named(expression, known, named):
    with pytest.raises(FilterError, match=named) as caught:
        check(parse(expression), dict.fromkeys(known, ()))
    assert (len(str(caught.value)) == 500) == (len(known) == 1000)
    assert "column" not in str(caught.value)


def test_fields_of_deleted_documents_are_known_until_the_index_is_compacted(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:8"]) as index:
        index.add([Document("1", "One.", metadata={"prize": "Oscar"}), Document("2", "Two.")])
        index.delete(["1"])
        assert index.fields() == [] == index.info().fields
        assert index.count("prize is null and prize != 5") == 1
        with index.writer() as writer:
            assert writer.verify() == []
            writer.compact()
        with pytest.raises(FilterError):
            index.count("prize is null")
