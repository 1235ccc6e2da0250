"""The first screen: groups, queries and newest documents."""

from __future__ import annotations

import pytest

from semsearch import Document, Index
from semsearch.explore.map import make_map

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service.overview import CHARACTERS, overview_of

DOCUMENTS = [
    Document("b1", "a red bird sings a song", "Robin", {"seen": "2024-05-01"}),
    Document("b2", "a red bird sings loudly", None, {"seen": "2024-05-03T10:00"}),
    Document("f1", "blue fish swim in streams", "Trout", {"seen": "2024-05-03"}),
    Document("f2", "blue fish swim in streams and ponds " * 10, None, {"seen": None}),
]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "animals", "hashing") as index:
        index.add(DOCUMENTS)
        yield index


def test_without_a_map(index):
    found = overview_of(index)
    assert found["groups"] == []
    assert found["queries"] == ["Robin", "a red bird sings loudly", "Trout"]


def test_the_newest_documents_are_those_of_the_latest_day(index):
    newest = overview_of(index)["newest"]
    assert [document["id"] for document in newest] == ["b2", "f1"]
    index.add([Document("x", "text", None, {"seen": "unknown"})])  # no field of dates alone
    assert overview_of(index)["newest"] == []


def test_groups_have_a_typical_passage(index):
    made = make_map(index)
    made.save(index.path)
    groups = overview_of(index)["groups"]
    assert [group["name"] for group in groups] == made.names
    assert sum(group["passages"] for group in groups) == 4
    assert [group["id"] for group in groups] == [DOCUMENTS[row].id for row in made.typical]
    assert all(len(group["text"]) <= CHARACTERS + 1 for group in groups)
    typical = groups[0]["id"]
    index.delete([typical])
    assert typical not in [group["id"] for group in overview_of(index)["groups"]]


def test_an_empty_index(tmp_path):
    with Index.create(tmp_path / "empty", "hashing") as index:
        assert overview_of(index) == {"groups": [], "queries": [], "newest": []}
