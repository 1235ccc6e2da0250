"""Queries of several texts and of examples, with phrases and excluded words."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semsearch import Document, Index, load_encoder
from semsearch.errors import ArgumentError, DocumentNotFoundError
from semsearch.records import SearchMode
from semsearch.search.options import Options, SearchOptions
from semsearch.storage.words import MAX_QUERY_WORDS

TEXTS = {
    "a": "The heist goes wrong in Rome.",
    "b": "A comedy about a heist that goes well.",
    "c": "Wrong number, right heist.",
    "d": "Nothing happens.",
}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("hashing")


@pytest.fixture(scope="module")
def index(tmp_path_factory, encoder):
    with Index.create(tmp_path_factory.mktemp("queries") / "x", encoder) as index:
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
        ("query", "excluded"),
        [
            ("heist -comedies", "b"),  # by its stem
            ('heist -"goes wrong"', "a"),
            ("heist -comedy -number", "bc"),
            ('heist "goes well" -comedy', "b"),
            ("heist - comedy", ""),
            ("heist –comedy", ""),
            ("heist --comedy", ""),
            ("heist-comedy", ""),
            ("heist -5", ""),  # a number
            ("heist -a comedy- goes", ""),  # dashes of a sentence
            ("-comedy heist", ""),  # as in a list
        ],
    )
    def test_exclusions(self, index, mode, query, excluded):
        hits = index.search(query, mode=mode)
        # semantic search also finds documents without any of the words
        assert [name for name in found(hits) if name != "d"] == [
            name for name in "abc" if name not in excluded
        ]
        assert hits.query == query

    def test_an_exclusion_needs_another_word(self, index):
        assert ids(index.search("-comedy", mode="bm25")) == ["b"]
        assert found(index.search("heist -heist", mode="bm25")) == []
        assert found(index.search("heist -heist", mode="hybrid")) == ["d"]
        assert found(index.search("heist -rome", mode="bm25", where="n < 2")) == ["b"]
        assert ids(index.search("unknown -comedy", mode="bm25")) == []

    @pytest.mark.parametrize("mode", ["bm25", "hybrid"])
    def test_a_phrase_ranks_first_and_removes_nothing(self, index, mode):
        words = "heist Rome wrong goes well"
        plain = index.search(words, mode=mode)
        assert ids(plain)[0] == "a"
        assert index.search('heist "Rome" wrong "goes" well', mode=mode) == plain  # words
        quoted = index.search('heist Rome wrong "GOES well"', mode=mode)
        assert ids(quoted)[0] == "b"
        assert found(quoted) == found(plain)
        assert found(index.search('heist "no such phrase"', mode=mode)) == found(plain)
        assert index.search('heist Rome wrong "goes well', mode=mode)[0].document_id == "a"

    def test_more_phrases_rank_higher(self, index):
        hits = index.search('comedy "heist that" "goes wrong" "wrong in Rome"', mode="bm25")
        assert ids(hits) == ["a", "b", "c"]
        assert ids(index.search('"that goes" wrong right number', 1, mode="bm25")) == ["b"]

    @pytest.mark.parametrize("mode", ["semantic", "bm25", "hybrid"])
    def test_required_phrases(self, index, mode):
        def search(require, **options):
            return found(index.search("heist goes", mode=mode, require=require, **options))

        assert search("GOES wrong") == ["a"]
        assert found(index.search('"goes wrong" -comedy')) == ["a", "b", "c", "d"]  # literally
        assert search(["heist", "goes"]) == ["a", "b"]
        assert search("goes", where="n > 0") == ["b"]
        assert search("no such phrase") == search("?!") == []

    def test_with_a_filter(self, index):
        many = index.search_many(
            ["heist -comedy", "heist", '"goes well"'], mode="bm25", where="n < 3"
        )
        assert [found(hits) for hits in many] == [["a", "c"], ["a", "b", "c"], ["a", "b"]]

    def test_exclusions_and_requirements_apply_to_whole_documents(self, tmp_path):
        """A passage without the excluded word does not save its document."""
        with Index.create(tmp_path / "long", "hashing") as index:
            index.add(
                [Document("long", "A heist. " * 400 + "A comedy."), Document("b", "A heist.")]
            )
            assert index.info().passages > 2
            for mode in ("bm25", "hybrid"):
                assert ids(index.search("heist -comedy", mode=mode)) == ["b"]
                assert ids(index.search("heist", mode=mode, require="a comedy")) == ["long"]


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

    def test_k_hits_besides_the_examples(self, index):
        three = index.search("heist", 3, like="a")
        assert len(three) == 3
        assert index.search("heist", 1, offset=1, like="a") == three[1:2]
        assert found(index.search("heist", mode="hybrid", unlike="b")) == ["a", "c", "d"]

    @pytest.mark.parametrize(
        ("query", "options", "error"),
        [
            ("x", {"like": "a", "mode": "bm25"}, ArgumentError),
            ([], {"like": "a", "mode": "hybrid"}, ArgumentError),
            ([], {"like": "a", "rerank": Reranker()}, ArgumentError),
            ("x", {"like": ["a", "b"], "unlike": "b"}, ArgumentError),
            ("x", {"like": "nowhere"}, DocumentNotFoundError),
            ("x", {"like": [3]}, ArgumentError),
            ("x", {"dense_weight": 0.9}, ArgumentError),  # not hybrid
            ("x", {"rerank_depth": 9}, ArgumentError),
        ],
    )
    def test_options_that_do_not_fit(self, index, query, options, error):
        with pytest.raises(error):
            index.search(query, **options)


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("k", [1, numpy.int64(2)], [0, 3.0, None]),
        ("offset", [0], [-1]),
        ("per_document", [1], [0]),
        ("rerank_depth", [1], [0]),
        ("min_score", [-1, Decimal("0.25"), None], [math.nan]),
        ("dense_weight", [0, 1], [-0.1, 1.1]),
        ("mmr", [0, 1, None], [-0.1, 1.1]),
        ("rerank_budget", [0, math.inf, None], [-1, math.nan]),
        ("mode", ["bm25", SearchMode.HYBRID], ["sematic"]),
        ("require", ["a phrase", ["a", "b"], ()], ["", [3], 3]),
        ("rerank", [Reranker(), None], ["a-model", False]),
        ("where", ["n = 1", {"n": 1}, None], [["n = 1"], 0]),
    ],
)
def test_values_of_options(name, valid, invalid):
    assert Options(k=1).rerank_depth == 100
    assert name in SearchOptions.__optional_keys__ | {"k"}
    needed = {"k": 10, "mode": "hybrid", "rerank": Reranker()}
    for value in valid:
        Options(**(needed | {name: value}))
    for value in invalid:
        with pytest.raises(ValueError):
            Options(**(needed | {name: value}))


#: Syntax of FTS5 and SQL, and characters that are unusual in words.
PIECES = st.sampled_from(
    ['"', "'", "*", "^", "(", ")", ":", "+", "-", "{", "AND", "OR", "NOT", "NEAR(cat, 2)", "text:"]
    + ["passages_fts", "rank", "\0", "\x1b", "cat", "naps", "_", "%", "\\", ";", "--", "\ufeff"]
    + ["\u0301", "½", "Ⅷ", "٣", "猫", "ǅ", "\U0001f408"]
)


@pytest.fixture(scope="module")
def cats(tmp_path_factory):
    with Index.create(tmp_path_factory.mktemp("queries") / "index", "hashing") as index:
        index.add(
            [
                Document("1", 'The cat naps: "NEAR" the *dog*, OR not_at_all (half ½).'),
                Document("2", "猫 NEAR AND \0 OR"),
                Document("3", "Nothing of the kind."),
            ]
        )
        yield index


class TestAnyText:
    @settings(max_examples=150)
    @given(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
        | st.lists(PIECES, min_size=1, max_size=12).map(" ".join)
        | st.lists(PIECES, min_size=1, max_size=12).map("".join)
    )
    @example("NEAR")
    @example("_")
    def test_hits_are_ordered(self, cats, text):
        if text.strip():
            hits = cats.search(text, k=2, mode="hybrid")
            assert hits.query == text
            scores = [hit.score for hit in hits]
            assert scores == sorted(scores, reverse=True)

    @settings(max_examples=50)
    @given(st.lists(PIECES, max_size=5))
    def test_a_word_is_found_among_any_characters(self, cats, noise):
        hits = cats.search(" ".join(["naps", *noise]), k=3, mode="bm25")
        assert "1" in ids(hits)

    def test_the_number_of_words_is_limited(self, cats):
        assert ids(cats.search("cat " * MAX_QUERY_WORDS, mode="bm25"))[0] == "1"
        with pytest.raises(ArgumentError):
            cats.search("cat " * (MAX_QUERY_WORDS + 1), mode="bm25")
