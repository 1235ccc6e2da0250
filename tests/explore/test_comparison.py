"""Comparison of systems: shared hits, rank correlation, cosines between sentences."""

from __future__ import annotations

import numpy
import pytest
from scipy.stats import kendalltau

from semsearch import Document, Index
from semsearch.errors import ArgumentError
from semsearch.explore.compare import compare_neighbours, compare_sentences

TEXTS = {
    "a": "the red fox jumps over the fence",
    "b": "a fox and a hen",
    "c": "the hen lays an egg every day",
    "d": "bread and butter for breakfast",
    "e": "an egg for breakfast",
}


class Judge:
    """Scores a passage by its length."""

    spec = "cross-encoder:length"

    def score(self, query, passages):
        assert query
        return numpy.array([len(passage) for passage in passages], numpy.float32)

    def score_pairs(self, pairs):
        return self.score("x", [right for _, right in pairs])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contrast") / "one"
    with Index.create(folder, ["hashing", "hashing:64"]) as index:
        index.add([Document(name, text, metadata={"name": name}) for name, text in TEXTS.items()])
    return folder


def test_each_system_answers_as_it_does_alone(path):
    found = compare_neighbours(path, "egg for breakfast", k=3)
    assert list(found.hits) == ["hashing", "hashing-64", "bm25"]
    for name in ("hashing", "hashing-64"):
        with Index.open(path) as index:
            assert found.hits[name] == index.search("egg for breakfast", 3, space=name)
    with Index.open(path) as index:
        assert found.hits["bm25"] == index.search("egg for breakfast", 3, mode="bm25")
    assert found.verdicts == {}


def test_shared_hits_are_counted(path):
    found = compare_neighbours(path, "egg for breakfast", ["hashing", "bm25"], k=2)
    ids = [{hit.document_id for hit in hits} for hits in found.hits.values()]
    [agreement] = found.agreements
    assert agreement.shared == len(ids[0] & ids[1])
    assert {name for name, count in found.found_by.items() if count == 2} == ids[0] & ids[1]


def test_rank_correlation_uses_more_than_the_shown_hits(path):
    """By hand: hashing ranks all five, bm25 those that share a word; the rest tie last."""
    found = compare_neighbours(path, "egg for breakfast", ["hashing", "bm25"], k=3)
    with Index.open(path) as index:
        ranks = [
            {hit.document_id: hit.rank for hit in index.search("egg for breakfast", mode=mode)}
            for mode in ("semantic", "bm25")
        ]
    shown = {hit.document_id for hits in found.hits.values() for hit in hits}
    columns = [[rank.get(name, len(rank) + 1) for name in sorted(shown)] for rank in ranks]
    assert found.agreements[0].rank_correlation == pytest.approx(kendalltau(*columns).statistic)


def test_no_hits_have_no_correlation(path):
    found = compare_neighbours(path, "zebra", ["hashing", "bm25"], where="name = 'a'")
    assert found.hits["bm25"] == []
    assert found.agreements[0].rank_correlation is None


@pytest.mark.parametrize(("names", "shared"), [(["d", "e"], 2), (["c", "d", "e"], 3)])
def test_few_shared_documents_have_no_correlation(path, names, shared):
    # One or two shared documents used to give +1.00. Three of the five have egg, for or breakfast.
    where = f"name in ({', '.join(map(repr, names))})"
    found = compare_neighbours(path, "egg for breakfast", ["hashing", "bm25"], where=where)
    [agreement] = found.agreements
    assert agreement.shared == shared
    assert (agreement.rank_correlation is None) == (shared < 3)


@pytest.mark.parametrize(
    "arguments", [{"k": "3"}, {"systems": "hashing"}, {"judge": "a-model"}, {"text": None}]
)
def test_wrong_arguments(path, arguments):
    with pytest.raises(ArgumentError):
        compare_neighbours(**{"path": path, "text": "egg", **arguments})


def test_the_judge_sees_every_passage_once(path):
    found = compare_neighbours(path, "egg", ["hashing", "bm25"], k=5, judge=Judge())
    assert found.verdicts == {name: len(text) for name, text in TEXTS.items()}


def test_sentences_are_compared_with_each_other(hashing):
    sentences = ["a red fox", "a red hen", "bread"]
    [compared] = compare_sentences(sentences, ["hashing", "hashing"])
    vectors = hashing.encode_documents(sentences)
    assert compared.system == "hashing"
    numpy.testing.assert_allclose(compared.matrix, vectors @ vectors.T, atol=1e-6)


@pytest.mark.parametrize("sentences", [[], ["one"], ["one", " "]])
def test_too_few_sentences(sentences):
    with pytest.raises(ArgumentError):
        compare_sentences(sentences, ["hashing"])
