"""The kinds of metadata values are counted exactly, whatever is written and removed."""

from __future__ import annotations

import numpy
import pytest

from semsearch import Document, Index
from semsearch.storage.interface import parse_filter


def fields(index):
    return {field.name: (field.kinds, field.example) for field in index.info().fields}


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", ["hashing:8"]) as index:
        yield index


def test_kinds_and_examples(index):
    index.add(
        [
            Document("1", "One.", metadata={"year": 1990, "tags": ["a", "b", 1], "day": "1/5/90"}),
            Document("2", "Two.", metadata={"year": 2.5, "tags": "a", "on": "2019-05-01"}),
            Document("3", "Three.", metadata={"year": None, "on": "2019-05-01T10:00", "ok": False}),
            Document("4", "Four.", metadata={"year": "MCM", "tags": [], "in": {"a": 1}}),
            Document("5", "Five.", metadata={"tags": [[1], None], "on": "2019-05-01st", "id": "x"}),
        ]
    )
    assert fields(index) == {
        "day": ({"text": 1}, "1/5/90"),
        "id": ({"text": 1}, "x"),
        "in": ({"object": 1}, None),
        "ok": ({"boolean": 1}, False),
        "on": ({"date": 2, "text": 1}, "2019-05-01"),
        "tags": (
            {
                "list": 1,
                "list of list": 1,
                "list of null": 1,
                "list of number": 1,
                "list of text": 1,
                "text": 1,
            },
            "a",
        ),
        "year": ({"number": 2, "null": 1, "text": 1}, 1990),
    }
    assert index.fields() == ["day", "id", "in", "ok", "on", "tags", "year"]


def test_changes_and_deletions_are_counted(index, tmp_path):
    values = ["x", "2020-02-03", 1, 2.5, True, None, {"a": 1}, [], ["x", 1, 1], [[], "2020-02-03"]]
    names = ["a", "id", 'q"', "é"]
    for step in range(3):
        index.add(
            Document(str(n), f"Text {n}", metadata={names[(n + step) % 4]: values[n], "all": value})
            for n, value in enumerate(values[step:])
        )
        index.delete([str(step)])
        with Index.create(tmp_path / str(step), ["hashing:8"]) as fresh:
            fresh.add(index)
            counted = {name: kinds for name, (kinds, _) in fields(index).items()}
            assert counted == {name: kinds for name, (kinds, _) in fields(fresh).items()}


def test_values_are_counted_over_all_documents(index):
    """Texts that most documents have of their own, or that are long, are not listed."""
    rows = [
        {"year": n // 2, "n": n, "tags": ["a", n] if n % 2 else "b", "url": f"/{n}", "width": n % 9}
        for n in range(200)
    ]
    index.add(Document(str(row["n"]), "A text.", metadata=row) for row in rows)
    index.add([Document("x", "X.", metadata={"tags": ["a", "y" * 101, 1850]})])
    with index.read() as state:
        n, tags, url, width, year = state.field_values()
        assert state.texts_like("url", "/19", limit=3) == [("/19", 1), ("/190", 1), ("/191", 1)]
        assert state.texts_like("tags", "A") == [("a", 101)]
        assert state.texts_like("none", "a") == []
    assert tags == ("tags", ["number", "text"], [("a", 101), ("b", 100)], None, None, [])
    assert url == ("url", ["text"], [], None, None, [])
    assert n == ("n", ["number"], [], 0, 199, [])  # each document has its own
    assert width.histogram == []
    assert year[:5] == ("year", ["number"], [], 0, 99)
    edges = numpy.linspace(0, 100, 25)
    assert year.histogram == numpy.histogram([row["year"] for row in rows], edges)[0].tolist()
    index.delete(["1", "x"])
    with index.read() as state:
        assert state.field_values()[1].values == [("b", 100), ("a", 99)]


def test_values_of_many_documents_are_those_of_a_sample(index, monkeypatch):
    monkeypatch.setattr("semsearch.storage.sqlite.facets.FACET_DOCUMENTS", 10)
    index.add(Document(str(n), "Text.", metadata={"kind": "ab"[n % 5 == 0]}) for n in range(40))
    with index.read() as state:
        (kind,) = state.field_values()
        (some,) = state.field_values(parse_filter(state, "kind = 'b'"))
    assert sum(count for _, count in kind.values) == 10
    assert some.values == [("b", dict(kind.values)["b"])]


def test_values_of_documents_that_match(index):
    index.add(
        Document(str(n), "Text.", metadata={'q"': "a", "y": n, "d": f"2020-01-{n + 10}", "l": [n]})
        for n in range(4)
    )
    index.add([Document("no", "Text.", metadata={"y": "none", 'q"': 1, "b": True})])
    with index.read() as state:
        found = state.field_values(parse_filter(state, "y >= 1"))
        everything = state.field_values()
    dates = [(f"2020-01-{n}", 1) for n in (10, 11, 12, 13)]
    assert everything == [
        ("b", ["boolean"], [("true", 1)], None, None, []),
        ("d", ["date"], dates, "2020-01-10", "2020-01-13", [1, 1, 1, 1]),
        ("l", ["number"], [], None, None, []),
        ('q"', ["number", "text"], [("a", 4)], 1, 1, []),
        ("y", ["number", "text"], [("none", 1)], 0, 3, []),
    ]
    index.delete(["no"])
    with index.read() as state:
        assert [one.name for one in state.field_values()] == ["d", "l", 'q"', "y"]
    assert {one.name: (one.values, one.least) for one in found} == {
        "b": ([], None),
        "d": (dates[1:], "2020-01-11"),
        "l": ([], None),
        'q"': ([("a", 3)], None),
        "y": ([], 1),
    }
