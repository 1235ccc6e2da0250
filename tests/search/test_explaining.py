"""Explanations of hits."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from semsearch import Document, Index

TEXTS = {
    "a": "The dog sleeps. A red bird sings in the morning! It rains.",
    "b": "Birds sing.\n\nThe singing bird is red.",
    "c": "Fish.",
}


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add(
            Document(name, text, metadata={"n": n}) for n, (name, text) in enumerate(TEXTS.items())
        )
        yield index


def by_id(hits):
    return {hit.document_id: hit.explanation for hit in hits}


def test_hybrid(index):
    query = "a red bird sings"
    found = by_id(index.search(query, mode="hybrid", explain=True))
    dense = {hit.document_id: hit.rank for hit in index.search(query)}
    words = {hit.document_id: hit.rank for hit in index.search(query, mode="bm25")}
    assert {name: one.dense_rank for name, one in found.items()} == dense
    assert {name: one.bm25_rank for name, one in found.items()} == {"c": None, **words}
    assert {name: set(one.words) for name, one in found.items()} == {
        "a": {"red", "bird", "sings"},
        "b": {"red", "bird", "birds", "sing", "singing"},
        "c": set(),
    }
    assert {name: TEXTS[name][slice(*one.sentence)] for name, one in found.items()} == {
        "a": "A red bird sings in the morning!",
        "b": "The singing bird is red.",
        "c": "Fish.",
    }


def test_ranks_of_a_single_ranking(index):
    for mode, ranked, count in (("semantic", "dense_rank", 3), ("bm25", "bm25_rank", 2)):
        hits = index.search("a red bird sings", mode=mode, explain=True)
        assert [getattr(hit.explanation, ranked) for hit in hits] == list(range(1, 1 + count))


def test_sentences_of_a_late_passage(tmp_path):
    text = "Filler words stand here. " * 300 + "A zebra appears at last. The end."
    with Index.create(tmp_path / "y", "hashing") as index:
        index.add([Document("long", text)])
        (hit,) = index.search("a zebra appears", explain=True)
        assert hit.passage.start > 0
        assert text[slice(*hit.explanation.sentence)] == "A zebra appears at last."


@pytest.mark.parametrize(
    ("mode", "first"),
    [
        ("semantic", ["encode", "vectors"]),
        ("bm25", ["words"]),
        ("hybrid", ["encode", "vectors", "words"]),
    ],
)
def test_stages(index, mode, first, monkeypatch):
    ticks = itertools.count(0, 0.25)
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("semsearch.search.retrieval.time", clock)
    hits = index.search("red", mode=mode, explain=True, mmr=0.5)
    assert [stage.name for stage in hits.stages] == [*first, "fetch", "diversity", "explain"]
    assert {stage.milliseconds for stage in hits.stages} == {250}


def test_explaining_does_not_change_the_hits(index):
    for mode in ("semantic", "bm25", "hybrid"):
        plain = index.search("red bird", mode=mode)
        assert all(hit.explanation is None for hit in plain)
        assert plain.stages == ()
        hits = index.search("red bird", mode=mode, explain=True)
        assert [hit._replace(explanation=None) for hit in hits] == plain


def test_ranks_and_scores_before_reranking(index):
    class ByLength:
        def score(self, query, passages):
            return [-len(text) for text in passages]

    hits = index.search("a red bird sings", rerank=ByLength(), explain=True)
    assert [hit.document_id for hit in hits] == ["c", "b", "a"]
    before = {hit.document_id: hit for hit in index.search("a red bird sings")}
    for hit in hits:
        assert hit.explanation.first_rank == before[hit.document_id].rank
        assert hit.explanation.first_score == before[hit.document_id].score


def test_ranks_do_not_count_the_examples(tmp_path):
    """The examples are first by meaning, but not by words, which decide."""
    options = {"like": ["x", "y"], "mode": "hybrid", "dense_weight": 0.1, "explain": True}
    with Index.create(tmp_path / "y", "hashing") as index:
        index.add(Document(name, "zebra lion tiger") for name in "xy")
        index.add(Document(name, f"red bird {name * 3}") for name in "abcdef")
        for per_document in (1, 2):
            options["per_document"] = per_document
            every = index.search("red bird", 8, **options)
            assert sorted(hit.explanation.dense_rank for hit in every) == [1, 2, 3, 4, 5, 6]
            assert sorted(hit.explanation.bm25_rank for hit in every) == [1, 2, 3, 4, 5, 6]
            assert index.search("red bird", 1, **options) == every[:1]
