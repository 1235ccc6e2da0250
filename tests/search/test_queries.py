"""Queries of several texts and of examples, with phrases and excluded words."""

from __future__ import annotations

import numpy
import pytest

from semsearch import Document, Index, load_encoder
from semsearch.analysis import parse_query
from semsearch.errors import ArgumentError, CombinationError

TEXTS = {
    "a": "The heist goes wrong in Rome.",
    "b": "A comedy about a heist that goes well.",
    "c": "Wrong number, right heist.",
    "d": "Nothing happens.",
}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("hashing")


@pytest.fixture
def index(tmp_path, encoder):
    with Index.create(tmp_path / "x", encoder) as index:
        index.add(
            Document(name, text, metadata={"n": n}) for n, (name, text) in enumerate(TEXTS.items())
        )
        yield index


class Reranker:
    def score(self, query, passages):
        return [0] * len(passages)


def ids(hits):
    return [hit.document_id for hit in hits]


def found(hits):
    return sorted(ids(hits))


class TestWords:
    @pytest.mark.parametrize("mode", ["bm25", "hybrid"])
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ('"goes wrong" heist', "a"),
            ('"heist goes"', "a"),
            ('"Heist GOES"', "a"),
            ("heist -comedy", "ac"),
            ("heist -comedies", "ac"),  # by its stem
            ('heist -"goes wrong"', "bc"),
            ("heist -comedy -number", "a"),
            ('heist "goes" -comedy', "a"),
            ('heist "no such phrase"', ""),
            ('"heist', "abc"),  # an unclosed quote is no phrase
            ("well-known heist", "abc"),
            ("heist - comedy", "abc"),
            ("heist -5", "abc"),  # a number
        ],
    )
    def test_phrases_and_exclusions(self, index, mode, query, expected):
        hits = index.search(query, mode=mode)
        # semantic search also finds documents without any of the words
        assert [name for name in found(hits) if name != "d"] == list(expected)
        assert hits.query == query

    def test_with_a_filter(self, index):
        assert ids(index.search("heist -comedy", mode="hybrid", where="n > 0")) == ["c", "d"]
        many = index.search_many(
            ["heist -comedy", "heist", '"goes well"'], mode="bm25", where="n < 3"
        )
        assert [found(hits) for hits in many] == [["a", "c"], ["a", "b", "c"], ["b"]]

    def test_semantic_search_takes_them_literally(self, index):
        assert found(index.search('"goes wrong" -comedy')) == ["a", "b", "c", "d"]

    def test_excluded_words_only(self, index):
        for mode in ("bm25", "hybrid"):
            with pytest.raises(ArgumentError, match="the query '-comedy' only excludes words"):
                index.search("-comedy", mode=mode)

    @pytest.mark.parametrize("query", ["-no " * 101 + "heist", '"a b" ' * 60 + "-c " * 60])
    def test_too_many_phrases(self, index, query):
        with pytest.raises(ArgumentError, match="phrases and excluded words; .* accept 100"):
            index.search(query, mode="bm25")
        assert len(index.search("-no " * 100 + "heist", mode="bm25")) == 3

    @pytest.mark.parametrize("query", ['"' + "a" * 10**6, '"' * 10**6, '-"' + "é " * 10**5])
    def test_long_queries_are_parsed_fast(self, query):
        """With a backtracking pattern, the first took hours."""
        assert parse_query(query).required == ()

    @pytest.mark.parametrize("query", ['""', '"?!"', '-"…"', "--", '"a"b'])
    def test_quotes_and_hyphens_without_a_phrase(self, query):
        assert parse_query(query) == (query, query, (), ())

    def test_phrases_and_exclusions_apply_to_whole_documents(self, tmp_path):
        """A passage without the excluded word does not save its document."""
        with Index.create(tmp_path / "long", "hashing") as index:
            index.add(
                [Document("long", "A heist. " * 400 + "A comedy."), Document("b", "A heist.")]
            )
            assert index.info().chunks > 2
            for mode in ("bm25", "hybrid"):
                assert ids(index.search("heist -comedy", mode=mode)) == ["b"]
                assert ids(index.search('heist "a comedy"', mode=mode)) == ["long"]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [('"京都"', "xy"), ('"東京都"', "x"), ('"都へ"', "x"), ("京 -東京", "y")],
    )
    def test_scripts_without_spaces(self, tmp_path, query, expected):
        with Index.create(tmp_path / "ja", "hashing") as index:
            index.add(
                [Document("x", "東京都へ行く"), Document("y", "京都は古い"), Document("z", "大阪")]
            )
            assert found(index.search(query, mode="bm25")) == list(expected)


class TestExamples:
    def test_several_texts_are_added_up(self, index, encoder):
        texts = ["heist in Rome", "nothing happens"]
        total = encoder.encode_queries(texts).sum(axis=0)
        expected = index.search(total)
        hits = index.search(texts)
        assert ids(hits) == ids(expected)
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
        assert hits.query == "heist in Rome nothing happens"
        assert ids(index.search(texts[:1])) == ids(index.search(texts[0]))

    def test_like_and_unlike(self, index, encoder):
        (query,) = encoder.encode_queries(["heist"])
        vectors = dict(zip(TEXTS, encoder.encode_documents(list(TEXTS.values())), strict=True))
        total = query + vectors["a"] - vectors["b"] / 2
        expected = [hit for hit in index.search(total) if hit.document_id not in "ab"]
        hits = index.search("heist", like="a", unlike=["b"])
        assert ids(hits) == ids(expected)
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected])
        assert [hit.rank for hit in hits] == [1, 2]
        weighted = index.search("heist", like={"a": 1, "b": -0.5})
        assert [hit.score for hit in weighted] == pytest.approx([hit.score for hit in hits])

    def test_k_hits_besides_the_examples(self, index):
        assert len(index.search("heist", 3, like="a")) == 3
        assert (
            index.search("heist", 1, offset=1, like="a") == index.search("heist", 2, like="a")[1:]
        )

    def test_in_hybrid_search(self, index):
        hits = index.search("heist", mode="hybrid", unlike="b")
        assert "b" not in ids(hits)
        assert hits[0].scores.bm25 is not None

    @pytest.mark.parametrize(
        ("query", "options", "message"),
        [
            ("x", {"like": "a", "mode": "bm25"}, "like and unlike compare vectors"),
            ([], {"like": "a", "mode": "hybrid"}, "examples have no words"),
            ([], {"like": "a", "rerank": Reranker()}, "must be 'semantic', and rerank None"),
            ("x", {"like": ["a", "b"], "unlike": "b"}, "document 'b' is in both like and unlike"),
            ("x", {"like": "nowhere"}, "no document 'nowhere' in this index"),
            ("x", {"like": [3]}, "must be a string, not 3"),
            ("x", {"unlike": {"a": "much"}}, "the weight of 'a' must be a number"),
        ],
    )
    def test_invalid_arguments(self, index, query, options, message):
        with pytest.raises(ArgumentError, match=message):
            index.search(query, **options)


class TestPassages:
    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    def test_several_of_a_document(self, tmp_path, mode):
        with Index.create(tmp_path / "long", "hashing") as index:
            index.add([Document("long", "A red heist. " * 500), Document("b", "A blue heist.")])
            passages = index.info().chunks
            assert passages > 4
            for allowed in (1, 2, 100):
                hits = index.search("heist", 50, mode=mode, per_document=allowed)
                assert ids(hits).count("long") == min(allowed, passages - 1)
                assert ids(hits).count("b") == 1
                assert len({hit.chunk.id for hit in hits}) == len(hits)
                scores = numpy.array([hit.score for hit in hits])
                assert (scores[:-1] >= scores[1:]).all()


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"fusion": "rrf"}, {"mode": "hybrid"}),
        ({"dense_weight": 0.4}, {"mode": "hybrid"}),
        ({"rerank_depth": 5}, {"rerank": Reranker()}),
        ({"rerank_budget": 1}, {"rerank": Reranker()}),
    ],
)
def test_options_without_effect_are_refused(index, options, needed):
    with pytest.raises(CombinationError, match=f"{next(iter(options))} .*need"):
        index.search("heist", **options)
    assert index.search("heist", **options, **needed)
