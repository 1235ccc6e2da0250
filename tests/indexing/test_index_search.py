"""Searching an index directly, counting documents and finding similar ones."""

from __future__ import annotations

import json
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


class TestSearch:
    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    def test_pages(self, index, mode):
        every = index.search("red bird fish", k=5, mode=mode)
        for offset in range(6):
            page = index.search("red bird fish", k=2, offset=offset, mode=mode)
            assert page == every[offset : offset + 2]
            assert [hit.rank for hit in page] == [hit.rank for hit in every[offset : offset + 2]]

    def test_min_score(self, index):
        every = index.search("red bird")
        for least in (every[0].score, every[1].score, 0.1):
            kept = [hit for hit in every if hit.score >= least]
            assert index.search("red bird", min_score=least) == kept
            assert 0 < len(kept) < 5
        assert index.search("red bird", min_score=1.5) == []

    def test_vector_as_query(self, index, encoder):
        vector = encoder.encode_queries(["red bird"])[0]
        expected = index.search("red bird")
        for query in (vector, 3 * vector, vector.tolist(), vector.astype(numpy.float64)):
            hits = index.search(query)
            assert ids(hits) == ids(expected)
            assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
        assert hits.query == ""
        mixed = index.search_many(["blue", vector, "red"])
        assert [ids(hits) for hits in mixed] == [
            ids(index.search(query)) for query in ("blue", vector, "red")
        ]

    def test_invalid_queries(self, index):
        zeros, ones = numpy.zeros(256), numpy.ones((1, 256))
        for query in ([0.5, 0.5], zeros, zeros + numpy.nan, ones, ["red", 1], [], [""], " ", None):
            with pytest.raises(ArgumentError):
                index.search(query)

    def test_a_vector_has_no_words(self, index):
        for mode in ("bm25", "hybrid"):
            with pytest.raises(ArgumentError):
                index.search(numpy.ones(256), mode=mode)

    def test_the_metadata_of_a_hit_are_its_own(self, index):
        first, second = index.search_many(["red bird", "red"], k=5)
        first[0].metadata["seen"] = True
        assert all("seen" not in hit.metadata for hit in second)


class TestMoreLike:
    def test_one_document(self, index):
        hits = index.more_like("a", k=10)
        assert "a" not in ids(hits)
        assert set(ids(hits)) == {"b", "c", "d", "e"}
        assert set(ids(hits)[:2]) == {"b", "c"}
        assert [hit.rank for hit in hits] == [1, 2, 3, 4]

    def test_several_documents(self, index, encoder):
        vectors = encoder.encode_documents(list(TEXTS.values()))
        by_name = dict(zip(TEXTS, vectors, strict=True))
        query = by_name["a"] + by_name["d"] - by_name["c"] / 2
        query /= numpy.linalg.norm(query)
        hits = index.more_like(["a", "d"], unlike="c")
        expected = {name: float(by_name[name] @ query) for name in "be"}
        assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)

    def test_a_long_document_is_the_mean_of_its_passages(self, index, encoder):
        index.add([Document("long", "red bird. " * 200 + "blue fish. " * 200)])
        passages = index.passages(where="id = 'long'")
        assert len(passages.texts) > 2
        mean = passages.vectors.mean(axis=0)
        score = index.more_like("long", k=1)[0].score
        others = index.passages(where="id != 'long'").vectors
        assert score == pytest.approx((others @ mean / numpy.linalg.norm(mean)).max(), abs=1e-6)

    def test_pages_and_filters(self, index):
        every = index.more_like(["a", "b"], k=3)
        assert index.more_like(["a", "b"], k=2, offset=1) == every[1:3]
        assert ids(index.more_like("a", where="n >= 3")) == [
            hit.document_id for hit in index.more_like("a") if hit.document_id in "de"
        ]

    @pytest.mark.parametrize("examples", [[], "x", [1], {1, "a"}, None])
    def test_mistakes(self, index, examples):
        with pytest.raises(ArgumentError):
            index.more_like(examples)


def test_a_hit_as_json(index):
    hit = index.search("red bird", k=1)[0]
    assert json.loads(json.dumps(hit.to_dict())) == {
        "rank": 1,
        "score": 1.0,
        "scores": {"cosine": 1.0},
        "id": "a",
        "title": None,
        "text": "red bird",
        "start": 0,
        "end": 8,
        "metadata": {"n": 0},
    }


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
