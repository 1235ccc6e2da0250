"""The map, the first screen and the fields over HTTP."""

from __future__ import annotations

import pytest
from birds import asking

from semsearch import Document, Index
from semsearch.explore.map import make_map

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
from semsearch.service.overview import CHARACTERS, overview_of

DOCUMENTS = [
    Document("b1", "a red bird sings", "Robin", {"seen": "2024-05-01", "tags": ["red", "small"]}),
    Document("b2", "a red bird sings loudly", None, {"seen": "2024-05-03T10:00", "tags": ["red"]}),
    Document("f1", "blue fish swim", "Trout", {"seen": "2024-05-03", "tags": [], "year": 1999}),
    Document("f2", "blue fish swim " * 20, None, {"seen": None, "year": 2010, "wild": True}),
]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "birds", ["hashing", "hashing:64"]) as index:
        index.add(DOCUMENTS)
        yield index


@pytest.fixture
def made(index):
    made = make_map(index)
    made.save(index.path)
    return made


@pytest.fixture
def get(index):
    """Returns the status and the JSON of a view."""

    def got(view, **parameters):
        answer = client.get(f"/v1/indexes/birds/{view}", params=parameters)
        return answer.status_code, answer.json()

    with asking({"birds": index.path}) as client:
        yield got


class TestMap:
    def test_points_of_the_passages_that_are_still_there(self, index, made, get):
        index.delete(["b2"])
        index.add([Document("g", "a green frog")])
        _, answer = get("map")
        assert (answer["space"], answer["of"]) == ("hashing", 4)
        points = answer["points"]
        assert (points["id"], points["start"]) == (["b1", "f1", "f2"], [0, 0, 0])
        assert points["label"] == ["Robin", "Trout", DOCUMENTS[3].text[:80]]
        for name, column in zip("xy", made.points[[0, 2, 3]].T, strict=True):
            assert points[name] == pytest.approx(column.tolist(), abs=1e-4)
        groups = [answer["groups"][group] for group in points["group"]]
        assert groups == [made.names[group] for group in made.groups[[0, 2, 3]]]

    def test_the_newest_map_is_shown_if_there_is_one(self, index, get):
        status, problem = get("map")
        assert status == 404
        assert "semsearch map" in problem["detail"]
        for space in ("hashing", "hashing-64"):
            make_map(index, space).save(index.path)
            assert get("map")[1]["space"] == space

    def test_ranges_of_numbers_name_their_least_and_greatest(self, index, get):
        index.delete(where="id is not null")
        scores = [number / 100 for number in range(25)]
        index.add([Document(f"s{n}", f"text {n}", None, {"score": n}) for n in scores])
        index.add([Document("none", "a text without")])
        make_map(index).save(index.path)
        _, found = get("map/colours", field="score")
        assert found["names"] == [
            "0.0 to 0.03",
            "0.04 to 0.07",
            "0.08 to 0.11",
            "0.12 to 0.15",
            "0.16 to 0.19",
            "0.2 to 0.24",
            "other",
        ]
        assert sorted(found["places"]) == sorted([0, 1, 2, 3, 4, 5] * 4 + [5, 6])


class TestOverview:
    def test_without_a_map(self, index, get):
        found = get("overview")[1]
        assert found["groups"] == []
        assert found["queries"] == ["Robin", "a red bird sings loudly", "Trout"]
        assert [document["id"] for document in found["newest"]] == ["b2", "f1"]  # the latest day
        index.add([Document("x", "text", None, {"seen": "unknown"})])  # no field of dates alone
        assert get("overview")[1]["newest"] == []

    def test_groups_have_a_typical_passage(self, index, made):
        groups = overview_of(index)["groups"]
        assert [group["name"] for group in groups] == made.names
        assert sum(group["passages"] for group in groups) == 4
        assert [group["id"] for group in groups] == [DOCUMENTS[row].id for row in made.typical]
        assert all(len(group["text"]) <= CHARACTERS + 1 for group in groups)
        typical = groups[0]["id"]
        index.delete([typical])
        assert typical not in [group["id"] for group in overview_of(index)["groups"]]
        index.delete(where="id is not null")
        assert overview_of(index) == {"groups": [], "queries": [], "newest": []}


def test_fields_with_values_of_the_documents_that_match(get):
    def described(**parameters):
        _, answer = get("fields", **parameters)
        return answer["documents"], {field["name"]: field for field in answer["fields"]}

    documents, fields = described()
    assert documents == 4
    assert fields["tags"]["values"] == [["red", 2], ["small", 1]]
    assert (fields["year"]["least"], fields["year"]["greatest"]) == (1999, 2010)
    assert fields["year"]["values"] == []
    assert fields["wild"]["kinds"] == ["boolean"]
    documents, fields = described(where="year > 2000 or tags = 'small'")
    assert documents == 2
    assert fields["tags"]["values"] == [["red", 1], ["small", 1]]
    assert (fields["year"]["least"], fields["year"]["greatest"]) == (2010, 2010)
    status, problem = get("fields", where="wings = 2")
    assert (status, problem["code"]) == (422, "invalid-filter")
