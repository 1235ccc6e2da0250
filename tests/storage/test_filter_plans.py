"""All passages that match a filter are found, whichever plan is chosen."""

from __future__ import annotations

import pytest

from semsearch import Document, Index

COUNT = 400


@pytest.fixture(scope="module", params=["flat", "ivf"])
def large(request, tmp_path_factory):
    with (
        pytest.MonkeyPatch.context() as patch,
        Index.create(tmp_path_factory.mktemp("plans") / "x", ["hashing:32"]) as index,
    ):
        documents = [
            Document(
                str(n),
                f"word{n % 7} thing{n % 11} item{n}",
                metadata={"n": n, "part": n % 100, "tags": ["even", "odd"][n % 2 :]},
            )
            for n in range(COUNT)
        ]
        patch.setattr("semsearch.vector_indexes.MIN_IVF_VECTORS", COUNT)
        with index.writer() as writer:
            writer.set_index_type(request.param, recall=1)
            writer.upsert(documents)
        index.add([Document("recent", "word3 thing4", metadata={"n": -1, "part": 0})])
        index.delete(["3", "7"])
        yield index


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("part < 5", lambda m: m["part"] < 5),
        ("n = 17", lambda m: m["n"] == 17),
        ("id = '17'", lambda m: m["n"] == 17),
        ("not part < 50", lambda m: m["part"] >= 50),
        ("part < 50 and tags = 'odd'", lambda m: m["part"] < 50 and "odd" in m.get("tags", [])),
        ("tags is null", lambda m: "tags" not in m),
    ],
)
@pytest.mark.parametrize("indexed", [(), ("n", "part", "tags")])
def test_returns_all_matches_up_to_k(large, where, holds, indexed):
    with large.writer() as writer:
        for name in indexed:
            writer.index_field(name)
    everything = large.search("word3 thing4", k=COUNT + 1)
    expected = [hit.document_id for hit in everything if holds(hit.metadata)]
    for k in (1, 10, 300):
        found = large.search("word3 thing4", k=k, where=where)
        assert [hit.document_id for hit in found] == expected[:k]
        assert large.search_many(["word3 thing4"], k=k, where=where) == [found]


def test_many_match_but_none_near_the_query(large):
    """The share of matches in a sample is too high near the query."""
    farthest = large.search("word3 thing4", k=COUNT + 1)[-150:]
    numbers = ", ".join(str(hit.metadata["n"]) for hit in farthest)
    found = large.search("word3 thing4", k=10, where=f"n in ({numbers})")
    assert [hit.document_id for hit in found] == [hit.document_id for hit in farthest[:10]]


@pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
def test_filter_cache_is_invalidated_by_writes(large, mode):
    where = "n > 395 or n < -5"
    with Index.open(large.path) as reader:
        before = reader.search("word3 thing4", 50, where=where, mode=mode)
        assert reader.search("word3 thing4", 50, where=where, mode=mode) == before
        large.add([Document("new", "word3 thing4", metadata={"n": -9, "part": 1})])
        found = reader.search("word3 thing4", 50, where=where, mode=mode)
        assert found[0].document_id == "new"
        large.delete(["new"])
        assert reader.search("word3 thing4", 50, where=where, mode=mode) == before
