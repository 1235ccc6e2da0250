"""Searching an index directly, counting documents and finding similar ones."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from semsearch import Document, Index, load_encoder
from semsearch.errors import ArgumentError, FilterError

TEXTS = {"a": "red bird", "b": "red fish", "c": "blue bird", "d": "blue fish", "e": "green tree"}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("hashing")


@pytest.fixture
def index(tmp_path, encoder):
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(
            Document(name, text, metadata={"n": place})
            for place, (name, text) in enumerate(TEXTS.items())
        )
        yield index


def ids(hits):
    return [hit.document_id for hit in hits]


class TestDocuments:
    def test_count(self, index):
        assert (len(index), index.count(), index.count("n >= 3"), index.count("n > 9")) == (
            (5, 5, 2, 0)
        )
        with pytest.raises(FilterError):
            index.count("m = 1")

    def test_contains(self, index):
        assert "a" in index
        assert "x" not in index
        assert 1 not in index


class TestMoreLike:
    def test_several_documents(self, index, encoder):
        vectors = encoder.encode_documents(list(TEXTS.values()))
        by_name = dict(zip(TEXTS, vectors, strict=True))
        query = by_name["a"] + by_name["d"] - by_name["c"] / 2
        query /= numpy.linalg.norm(query)
        hits = index.more_like(["a", "d"], unlike="c")
        expected = {name: float(by_name[name] @ query) for name in "be"}
        assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("examples", [[], "x", [1], {1, "a"}, None])
    def test_mistakes(self, index, examples):
        with pytest.raises(ArgumentError):
            index.more_like(examples)


def test_threads_load_an_encoder_once(index, monkeypatch):
    loaded = []

    def load(*arguments, **options):
        time.sleep(0.05)  # so that other threads come in
        loaded.append(load_encoder(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr("semsearch.index.load_encoder", load)
    with Index.open(index.path) as opened, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(opened.search, ["red bird"] * 4))
    assert [hits[0].document_id for hits in found] == ["a"] * 4
    assert len(loaded) == 1


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


class TestFilterPlans:
    """All matching passages are found, whichever plan is chosen."""

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
    def test_returns_all_matches_up_to_k(self, large, where, holds, indexed):
        with large.writer() as writer:
            for name in indexed:
                writer.index_field(name)
        everything = large.search("word3 thing4", k=COUNT + 1)
        expected = [hit.document_id for hit in everything if holds(hit.metadata)]
        for k in (1, 10, 300):
            found = large.search("word3 thing4", k=k, where=where)
            assert [hit.document_id for hit in found] == expected[:k]
            assert large.search_many(["word3 thing4"], k=k, where=where) == [found]

    def test_many_match_but_none_near_the_query(self, large):
        """The share of matches in a sample is too high near the query."""
        farthest = large.search("word3 thing4", k=COUNT + 1)[-150:]
        numbers = ", ".join(str(hit.metadata["n"]) for hit in farthest)
        found = large.search("word3 thing4", k=10, where=f"n in ({numbers})")
        assert [hit.document_id for hit in found] == [hit.document_id for hit in farthest[:10]]

    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    def test_filter_cache_is_invalidated_by_writes(self, large, mode):
        where = "n > 395 or n < -5"
        with Index.open(large.path) as reader:
            before = reader.search("word3 thing4", 50, where=where, mode=mode)
            assert reader.search("word3 thing4", 50, where=where, mode=mode) == before
            large.add([Document("new", "word3 thing4", metadata={"n": -9, "part": 1})])
            found = reader.search("word3 thing4", 50, where=where, mode=mode)
            assert found[0].document_id == "new"
            large.delete(["new"])
            assert reader.search("word3 thing4", 50, where=where, mode=mode) == before
