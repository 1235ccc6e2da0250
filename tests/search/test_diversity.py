"""Folding of duplicates, and maximal marginal relevance."""

from __future__ import annotations

import numpy
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from semsearch import Document, Index
from semsearch.records import Hit, Passage
from semsearch.search.diversity import maximal_marginal_relevance, without_duplicates


class ByLength:
    """A reranker that prefers short passages."""

    read = 0

    def score(self, query, passages):
        self.read += len(passages)
        return numpy.array([-float(len(text)) for text in passages])


def ids(hits):
    return [hit.document_id for hit in hits]


def hits_of(scores):
    return [
        Hit(rank, score, str(rank), Passage(rank, str(rank), 0, 1, "x"), "x", {})
        for rank, score in enumerate(scores, start=1)
    ]


def unit(rows):
    rows = numpy.array(rows, numpy.float32)
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def test_mmr_orders_as_in_the_paper():
    """Chosen one by one by the formula of Carbonell & Goldstein (1998)."""
    random = numpy.random.default_rng(1)
    vectors = unit(random.standard_normal((12, 4)))
    scores = sorted(random.uniform(0.2, 0.9, 12), reverse=True)
    relevance = (numpy.array(scores) - scores[-1]) / (scores[0] - scores[-1])
    cosines = cosine_similarity(vectors)
    for weight in (0.0, 0.3, 0.7, 1.0):
        chosen: list[int] = []
        while len(chosen) < 12:
            gains = {
                place: weight * relevance[place]
                - (1 - weight) * max([cosines[place][other] for other in chosen] or [0])
                for place in range(12)
                if place not in chosen
            }
            chosen.append(max(gains, key=lambda place: (gains[place], -place)))
        found = maximal_marginal_relevance(hits_of(scores), vectors, weight)
        assert ids(found) == [str(place + 1) for place in chosen], weight


def test_the_best_hit_lists_its_duplicates():
    vectors = unit([[1, 0], [0, 1], [1, 0.1], [0.1, 1], [1, 1]])
    found = without_duplicates(hits_of([0.9, 0.8, 0.7, 0.6, 0.5]), vectors)
    assert {hit.document_id: hit.duplicates for hit in found} == {"1": ("3",), "2": ("4",), "5": ()}


def test_each_duplicate_is_listed_once_and_never_the_hit_itself():
    hits = [
        hit._replace(document_id=name)
        for hit, name in zip(hits_of([4, 3, 2, 1]), "abab", strict=True)
    ]
    (kept,) = without_duplicates(hits, unit([[1, 0]] * 4))
    assert (kept.document_id, kept.duplicates) == ("a", ("b",))


class TestOnAnIndex:
    @pytest.fixture
    def index(self, tmp_path):
        texts = {
            "a": "red bird sings",
            "b": "red bird sings",
            "c": "Red bird sings!",
            "d": "red fish swims",
            "e": "blue whale",
        }
        with Index.create(tmp_path / "x", "hashing") as index:
            index.add(Document(name, text) for name, text in texts.items())
            yield index

    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    def test_duplicates(self, index, mode):
        hits = index.search("red bird", 5, mode=mode, collapse_duplicates=True)
        assert ids(hits)[:2] == ["a", "d"]
        assert hits[0].duplicates == ("b", "c")
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert hits[0].to_dict()["duplicates"] == ["b", "c"]
        assert "duplicates" not in hits[1].to_dict()

    @pytest.mark.parametrize(("mode", "mmr"), [("semantic", 0.5), ("bm25", 0.3), ("hybrid", 0.5)])
    def test_mmr(self, index, mode, mmr):
        assert ids(index.search("red bird", 2, mode=mode, mmr=mmr)) == ["a", "d"]
        assert ids(index.search("red bird", 2, mode=mode)) == ["a", "b"]

    @pytest.mark.parametrize(
        "options",
        [
            {"mmr": 0.5, "like": ["d", "e"]},
            {"mmr": 0.5, "collapse_duplicates": True},
            {"rerank": ByLength(), "rerank_depth": 20, "like": ["d", "e"]},
        ],
    )
    def test_pages_hold_each_hit_once(self, index, options):
        index.add(Document(f"n{n}", f"red bird {n // 2} {'of' * (n % 7)}") for n in range(110))
        every = ids(index.search("red bird", 200, **options))
        assert len(every) == len(set(every))
        starts = range(0, 200, 23)
        pages = [index.search("red bird", 23, offset=start, **options) for start in starts]
        assert [name for page in pages for name in ids(page)] == every

    def test_the_reranker_reads_no_duplicates(self, index):
        """They make the search go deeper, until the reranker has all that it may read."""
        index.add(Document(f"again {n}", "red bird sings") for n in range(300))
        index.add(Document(f"other {n}", f"red kind{n} thing{n}") for n in range(90))
        reranker, options = ByLength(), {"rerank_depth": 50, "collapse_duplicates": True}
        hits = index.search("red bird sings", 20, rerank=reranker, **options)
        assert (len(hits), hits.reranked, reranker.read) == (20, 50, 50)
        assert sum(len(hit.duplicates) for hit in hits) in (0, 302)
