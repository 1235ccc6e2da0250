"""How many passages a search of the local store looks at, to find exactly `k`."""

from __future__ import annotations

import math

import numpy
import pytest

from semsearch import Document, Index
from semsearch.storage.interface import Restriction, parse_filter
from semsearch.storage.sqlite import bm25, vectors
from semsearch.storage.sqlite.restrictions import SAMPLE_DOCUMENTS, Restricted, best_passages
from semsearch.storage.sqlite.schema import get_setting
from semsearch.storage.sqlite.vectors import VectorView


@pytest.fixture
def index(tmp_path):
    """The first 600 documents are nearer to "amber" than the others; `n` is the number."""
    with Index.create(tmp_path / "x", "hashing:16") as index:
        index.add(
            Document(f"d{n}", "amber" if n < 600 else "amber birch", None, {"n": n})
            for n in range(1000)
        )
        yield index


@pytest.fixture
def searches(monkeypatch):
    """The number of passages of each search by vectors, and how many were allowed."""
    seen = []

    def search(view, queries, n, allowed=None):
        seen.append((n, None if allowed is None else len(allowed)))
        return real(view, queries, n, allowed)

    real = VectorView.search
    monkeypatch.setattr(VectorView, "search", search)
    return seen


def found(index, where=None, k=10, **options):
    return [hit.document_id for hit in index.search("amber", k, where=where, **options)]


def names(*numbers):
    return [f"d{n}" for n in range(*numbers)]


def depth(wanted, share):
    return math.ceil((wanted + 3 * math.sqrt(wanted * (1 - share))) / share)


class TestByVectors:
    def test_without_a_filter(self, index, searches):
        assert found(index) == names(10)
        assert searches == [(10, None)]

    def test_deleted_passages_take_up_places(self, index, searches):
        index.delete(["d0"])
        assert found(index) == names(1, 11)
        index.delete(names(1, 30))
        assert found(index) == names(30, 40)
        assert searches == [(18, None), (18, None), (72, None)]

    def test_a_filter_that_many_match(self, index, searches):
        assert found(index, "n >= 500") == names(500, 510)
        first = depth(10, 0.5)
        assert searches == [(first, None), (4 * first, None), (16 * first, None)]

    def test_a_filter_that_few_match(self, index, searches):
        assert found(index, "n >= 990") == names(990, 1000)
        assert found(index, "n >= 997") == names(997, 1000)
        assert found(index, "n > 999") == []
        assert searches == [(10, 10), (3, 3)]

    def test_matches_that_are_rare_among_the_nearest_are_listed(self, index, searches, monkeypatch):
        monkeypatch.setattr(vectors, "MAX_LEFT_OUT", 3)
        assert found(index, "n >= 950") == names(950, 960)
        first = depth(10, 0.05)
        assert searches == [(first, None), (10, 50)]

    def test_several_passages_of_a_document(self, tmp_path, searches):
        with Index.create(tmp_path / "long", "hashing:16") as index:
            index.add(Document(f"d{n}", "amber birch. " * 300) for n in range(10))
            passages = index.info().passages
            with index.read() as state:
                view = state._view(index.space())
            assert view.reach(3) == 2 * 3 + 8
            assert vectors._passages_per_document(state_of(index)) == passages / 10
            assert found(index, k=3) == names(3)
            assert all(n <= passages for n, _ in searches)
            hits = index.search("amber", 4, per_document=2)
            assert [hit.document_id for hit in hits] == ["d0", "d0", "d1", "d1"]
            with index.read() as state:
                query = index.encoder(index.space()).encode_queries(["amber"])
                [one] = state.search_vectors(index.space(), query, 3)
                assert [passage.document_id for passage in one] == [1, 2, 3]
                assert len({one.document_id for one in state.search_bm25("amber", 3)}) == 3

    def test_queries_that_found_enough_are_not_searched_again(self, index, searches):
        index.delete(names(30))
        hits = index.search_many(["amber", "birch"], 10)
        assert [len(one) for one in hits] == [10, 10]
        assert [n for n, _ in searches] == [18, 72]


def state_of(index):
    """A connection that reads the index."""
    return index._store.database._engine.connect()


class TestByWords:
    @pytest.fixture
    def counts(self, monkeypatch):
        """The number of passages of each search by words."""
        seen = []

        def owners(connection, ids, clause):
            seen.append(len(ids))
            return real(connection, ids, clause)

        real = bm25.owners
        monkeypatch.setattr(bm25, "owners", owners)
        return seen

    @pytest.mark.parametrize(
        ("where", "expected", "counts_of_rounds"),
        [
            (None, names(10), [28]),
            ("n >= 500", names(500, 510), [56, 224, 896]),
            ("n >= 990", names(990, 1000), [10]),
            ("n > 999", [], [0]),
        ],
    )
    def test_depth(self, index, counts, where, expected, counts_of_rounds):
        assert found(index, where, mode="bm25") == expected
        assert counts == counts_of_rounds

    def test_a_phrase_adds_the_best_score(self, index):
        with index.read() as state:
            assert state.matched_words("?!", [1]) == {}
            [best, *_] = state.search_bm25("birch", 1)
            plain = {one.passage_id: one.score for one in state.search_bm25("amber birch", 1000)}
            phrased = state.search_bm25("amber birch", 1000, phrases=["amber birch", "?"])
            [first] = state.search_bm25("amber birch", 1, phrases=["amber birch"])
            assert first == phrased[0]
        assert best.passage_id == first.passage_id == 601
        scores = [one.score for one in phrased]
        assert scores == sorted(scores, reverse=True)
        assert {one.passage_id for one in phrased[:400]} == set(range(601, 1001))
        assert phrased[0].score > 2 * plain[601] * 0.99
        assert phrased[-1].score < plain[601]


class TestFrequentWords:
    def test_a_sample_is_counted(self, index, monkeypatch):
        """A thousand passages, evenly spaced; the passages of some of the ids were deleted."""
        seen = []
        index.add(Document(f"more {n}", f"cedar {n}") for n in range(500))
        monkeypatch.setattr(bm25.Analyser, "words", lambda _, text: seen.append(text) or [text])
        index.delete(names(300))
        ids = numpy.linspace(301, 1500, 1000 * 1200 // 1200).astype(int)
        assert len(seen) == len(set(ids)) == 1000
        seen.clear()
        index.delete([f"d{n}" for n in range(400, 700) if n % 2])
        ids = set(numpy.linspace(301, 1500, 1000 * 1200 // 1050).astype(int))
        assert len(seen) == len(ids - {n + 1 for n in range(400, 700) if n % 2})

    def test_they_are_counted_after_changes_of_a_tenth(self, tmp_path, monkeypatch):
        def counted():
            with index.read() as state:
                return get_setting(state.connection, "frequent_words")

        monkeypatch.setattr(bm25, "FREQUENT_FROM", 10)
        with Index.create(tmp_path / "few", "hashing:8") as index:
            texts = ["amber birch"] * 8 + ["amber cedar"] * 12
            index.add(Document(f"d{n}", text) for n, text in enumerate(texts))
            assert counted() == [20, ["amber", "birch", "cedar"]]
            index.add(Document(f"e{n}", "delta") for n in range(2))
            assert counted()[0] == 20
            index.add([Document("e2", "delta")])
            assert counted() == [23, ["amber", "birch", "cedar"]]
            for query, words in {"amber delta": ["delta"], "amber": ["amber"]}.items():
                hits = index.search(query, 23, mode="bm25", explain=True)
                assert {tuple(hit.explanation.words) for hit in hits} == {tuple(words)}
            index.delete(names(4))
            assert counted() == [27, ["amber", "cedar"]]
            index.delete(names(4, 14))
            assert counted() == [37, []]


def restricted(index, where):
    with index.read() as state:
        condition = None if where is None else parse_filter(state, where)
        return Restricted(state.connection, Restriction(condition))


def test_documents_are_listed_in_parts(index):
    with index.read() as state:
        assert [len(part) for part in state.scan()] == [256, 256, 256, 232]
        assert [one.id for part in state.scan(400) for one in part] == names(1000)


class TestRestrictions:
    @pytest.mark.parametrize(
        ("where", "share"), [(None, 1), ("n >= 500", 0.5), ("n < 100", 0.1), ("n > 999", 0)]
    )
    def test_shares_are_estimated(self, index, where, share):
        assert restricted(index, where).share == pytest.approx(share, abs=0.002)

    def test_the_sample(self, index):
        """500 documents, evenly spaced."""
        assert SAMPLE_DOCUMENTS == 500
        sample = set(numpy.linspace(1, 1000, 500).astype(int) - 1)
        where = f"n in ({', '.join(map(str, sample))})"
        assert restricted(index, where).share == 1

    def test_phrases(self, index):
        with index.read() as state:
            found = Restricted(state.connection, Restriction(required=("amber birch",)))
            assert found.share == 0.4
            assert found.passages(state.connection).tolist() == list(range(601, 1001))
            excluded = Restricted(state.connection, Restriction(excluded=("birch", "?")))
            assert excluded.share == 0.6
            everything = Restricted(state.connection, Restriction())
            assert everything.passages(state.connection).tolist() == list(range(1, 1001))

    def test_of_no_documents(self, tmp_path):
        with Index.create(tmp_path / "empty", "hashing:16") as index:
            assert restricted(index, "id = 'a'").share == 0
            assert index.search("amber", where="id = 'a'") == []

    def test_the_best_passages(self):
        scored = [(0.9, 1), (0.8, 2), (0.8, 3), (0.7, 4), (0.6, 5), (0.5, 6)]
        owners = {1: 10, 2: 10, 3: 20, 5: 20, 6: 30}
        assert best_passages(scored, owners, 2, 1) == [(10, 1, 0.9), (20, 3, 0.8)]
        assert best_passages(scored, owners, 9, 1) == [(10, 1, 0.9), (20, 3, 0.8), (30, 6, 0.5)]
        assert best_passages(scored, owners, 3, 2) == [(10, 1, 0.9), (10, 2, 0.8), (20, 3, 0.8)]
        rest = iter(scored)
        best_passages(rest, owners, 1, 1)
        assert next(rest) == (0.8, 2)  # no more than needed are read
