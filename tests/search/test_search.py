"""Semantic, BM25 and hybrid search."""

from __future__ import annotations

import itertools

import numpy
import pytest

from semsearch import Document, Index
from semsearch.errors import ArgumentError, SpaceError

COLOURS = ["red", "green", "blue", "white"]


@pytest.fixture
def index(tmp_path):
    """200 documents; every tenth is long, with many passages."""
    with Index.create(tmp_path / "x", ["hashing"]) as index:
        index.add(
            Document(
                f"d{number}",
                f"{COLOURS[number % 4]} item {number}. " * (200 if number % 10 == 0 else 1),
                metadata={"number": number, "colour": COLOURS[number % 4]},
            )
            for number in range(200)
        )
        yield index


def test_fields_of_a_hit(index):
    hits = index.search("blue item 42", k=2)
    assert hits[0].to_dict() == {
        "rank": 1,
        "score": 1.0,
        "scores": {"cosine": 1.0},
        "id": "d42",
        "title": None,
        "text": "blue item 42.",
        "start": 0,
        "end": 13,
        "metadata": {"number": 42, "colour": "blue"},
    }
    assert hits.query == "blue item 42"
    assert [hit.rank for hit in hits] == [1, 2]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
@pytest.mark.parametrize(
    ("where", "matching"),
    [
        (None, 200),
        ("number < 50", 50),
        (f"number in {(*range(0, 200, 10),)}", 20),  # the long ones, whose passages crowd the top
        ("number in (10, 20, 30)", 3),
    ],
)
def test_k_hits_if_k_documents_match(index, mode, where, matching):
    for k in (1, 10, 60, 500):
        hits = index.search("red item 10", k=k, where=where, mode=mode)
        assert len(hits) == min(k, matching)
        assert len({hit.document_id for hit in hits}) == len(hits)
        assert all(left.score >= right.score for left, right in itertools.pairwise(hits))


def test_many_queries_are_answered_as_one_by_one(index):
    queries = [f"{COLOURS[number % 4]} item {number}" for number in range(0, 200, 7)]
    for mode in ("semantic", "bm25", "hybrid"):
        together = index.search_many(queries, k=5, mode=mode)
        for query, hits in zip(queries, together, strict=True):
            alone = index.search(query, k=5, mode=mode)
            assert [hit.document_id for hit in hits] == [hit.document_id for hit in alone]
            numpy.testing.assert_allclose(
                [hit.score for hit in hits], [hit.score for hit in alone], atol=1e-6
            )
    assert index.search_many([]) == []
    vectors = index.encoder(index.space()).encode_queries(queries)
    assert index.search_many(vectors, k=5) == index.search_many(queries, k=5)


@pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
def test_pages_and_minimum_scores(index, mode):
    every = index.search("red item 42", k=12, mode=mode)
    for offset in range(10):
        page = index.search("red item 42", k=3, offset=offset, mode=mode)
        assert page == every[offset : offset + 3]
    least = every[0].score
    kept = index.search("red item 42", k=12, mode=mode, min_score=least)
    assert kept == [hit for hit in every if hit.score >= least]
    assert index.search("red item 42", mode=mode, min_score=least + 1e-6) == []


def test_a_vector_as_query(index, monkeypatch):
    vector = index.encoder(index.space()).encode_queries(["red item 42"])[0]
    expected = index.search("red item 42")
    for query in (vector, 3 * vector, vector.tolist(), vector.astype(numpy.float64)):
        hits = index.search(query)
        assert [hit.document_id for hit in hits] == [hit.document_id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
    assert hits.query == ""
    queries = ["blue", vector, "red"]
    mixed = index.search_many(queries)
    assert [hits[0].text for hits in mixed] == [index.search(one)[0].text for one in queries]
    monkeypatch.setattr("semsearch.index.load_encoder", None)
    with Index.open(index.path) as again:  # which needs no encoder
        assert again.search(vector) == expected


@pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
def test_invalid_queries(index, mode):
    with pytest.raises(SpaceError):
        index.search("red", space="other", mode=mode)
    zeros, ones = numpy.zeros(256), numpy.ones((1, 256))
    vectors = [[0.5, 0.5], [[1], [2, 3]], zeros, zeros + numpy.nan, ones]
    for query in (*vectors, ["red", 1], [], [""], " ", "cat \ud800", None):
        with pytest.raises(ArgumentError):
            index.search(query, mode=mode)
    if mode != "semantic":
        with pytest.raises(ArgumentError):
            index.search(numpy.ones(256), mode=mode)


def test_the_metadata_of_a_hit_are_its_own(index):
    first, second = index.search_many(["red item", "red"], k=5)
    first[0].metadata["seen"] = True
    assert all("seen" not in hit.metadata for hit in second)


CLASHES = {"id": "x", "title": "T", "metadata.id": "y", "rank": 7}


def test_the_id_and_the_title_of_a_document_are_never_its_metadata(index):
    index.add([Document("clash", "red item", "A title", CLASHES)])
    for where, expected in {
        "id = 'clash' and title = 'A title'": ["clash"],
        "id = 'x' or title = 'T' or id is null": [],
        "metadata.id = 'x' and metadata.title = 'T'": ["clash"],
        "\"metadata.id\" = 'y' and metadata.rank = 7 and rank = 7": ["clash"],
        "\"metadata.id\" = 'x' or metadata.id = 'y'": [],
    }.items():
        assert index.passages(where=where).document_ids == expected
        hits = index.search("red", where=where)
        assert [hit.document_id for hit in hits] == expected


def test_to_frame(index):
    index.add([Document("clash", "red item", "A title", CLASHES)])
    frame = index.search("red item", where="id = 'clash'").to_frame()
    columns, own = ["rank", "score", "id", "title", "text"], ["metadata.id", "metadata.title"]
    own += ["metadata.metadata.id", "metadata.rank"]
    assert list(frame.columns) == [*columns, *own]
    assert frame.loc[0, ["id", *own]].tolist() == ["clash", "x", "T", "y", 7]
    empty = index.search("red", where="number > 1000").to_frame()
    assert (list(empty.columns), len(empty)) == (columns, 0)


class TestOneState:
    def test_a_reranker_that_lets_others_write_changes_nothing(self, index):
        """Hits and their explanations belong to the state in which the search began."""

        class Meddler:
            def score(self, query, passages):
                index.add([Document("d42", "green item 42 was blue once")])
                return numpy.zeros(len(passages))

        before = index.search("blue item 42", 1, mode="bm25", explain=True)
        hits = index.search("blue item 42", 1, mode="bm25", rerank=Meddler(), explain=True)
        assert [hit.text for hit in hits] == ["blue item 42."]
        assert hits[0].explanation == before[0].explanation
        assert hits[0].explanation.words == ("blue", "item", "42")
        assert index.get("d42").text == "green item 42 was blue once"

    def test_one_transaction_is_opened(self, index, monkeypatch):
        opened = []
        read = type(index).read
        monkeypatch.setattr(Index, "read", lambda self: opened.append(self) or read(self))
        index.search(
            "blue item", mode="hybrid", where="number < 99", like="d7", explain=True, mmr=0.5
        )
        assert opened == [index]
