"""The kinds of metadata values are counted exactly, whatever is written and removed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index
from semsearch.storage.sqlite.fields import DISTINCT_SAMPLE


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
            None,
        ),
        "year": ({"number": 2, "null": 1, "text": 1}, 1990),
    }
    assert index.fields() == ["day", "id", "in", "ok", "on", "tags", "year"]


def expected(corpus):
    """The same counts, computed from the metadata."""
    counts = Counter()
    for metadata in corpus.values():
        counts.update(
            {
                (name, f"list of {kind(item)}" if inside else kind(item))
                for name, value in metadata.items()
                for inside, item in (
                    [(True, each) for each in value]
                    if isinstance(value, list) and value
                    else [(False, value)]
                )
            }
        )
    return counts


def kind(value):
    if value == "2020-02-03":
        return "date"
    kinds = {str: "text", int: "number", float: "number", bool: "boolean", dict: "object"}
    return (kinds | {list: "list", type(None): "null"})[type(value)]


scalars = st.sampled_from(["x", "2020-02-03", 1, 2.5, True, False, None, {"a": 1}, [], ""])
metadata = st.dictionaries(
    st.sampled_from(["a", "id", 'q"', "é"]), scalars | st.lists(scalars, max_size=3), max_size=3
)
writes = st.lists(
    st.tuples(st.sampled_from(["add", "delete", "compact"]), st.sampled_from("012"), metadata),
    max_size=8,
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes)
def test_counts_are_those_of_the_corpus(tmp_path_factory, steps):
    corpus = {}
    with Index.create(tmp_path_factory.mktemp("kinds") / "x", ["hashing:8"]) as index:
        for step, name, own in steps:
            if step == "add":
                corpus[name] = own
                index.add([Document(name, f"Text {len(own)}", metadata=own)])
            elif step == "delete" and name in corpus:
                del corpus[name]
                index.delete([name])
            elif step == "compact":
                with index.writer() as writer:
                    writer.compact()
        counts = {(f.name, kind): n for f in index.info().fields for kind, n in f.kinds.items()}
        assert counts == expected(corpus)


def test_values_are_counted_over_all_documents(index):
    rows = [{"year": year, "tags": ["a", year] if year % 2 else "b"} for year in range(1900, 2020)]
    index.add(Document(str(row["year"]), "A text.", metadata=row) for row in rows)
    index.add([Document("x", "X.", metadata={"year": "1e999", "tags": ["a", "y" * 101, 1850]})])
    with index.read() as state:
        tags, year = state.field_values()
    assert tags == ("tags", ["number", "text"], [("a", 61), ("b", 60)], None, None)
    assert year == ("year", ["number", "text"], [("1e999", 1)], 1900, 2019)
    index.delete(["1900", "x"])
    with index.read() as state:
        assert [(field.values[:1], field.least) for field in state.field_values()] == [
            ([("a", 60)], None),
            ([], 1901),
        ]


def test_texts_that_are_all_distinct_are_not_listed(index):
    rows = [{"url": f"https://example.org/{n}", "kind": "page"} for n in range(DISTINCT_SAMPLE)]
    index.add(Document(str(n), "A text.", metadata=row) for n, row in enumerate(rows))
    with index.read() as state:
        kind, url = state.field_values()
    assert (kind.values, url.values) == ([("page", DISTINCT_SAMPLE)], [])
