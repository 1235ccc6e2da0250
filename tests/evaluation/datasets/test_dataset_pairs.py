"""Scored and labelled pairs: published sets, and users' own files."""

from __future__ import annotations

import gzip
import re

import pytest

from semsearch.errors import SemsearchError
from semsearch.evaluation.datasets import (
    LabelledPair,
    PairColumns,
    ScoredPair,
    load_labelled_pairs,
    load_sts_set,
)
from semsearch.evaluation.datasets.pairtable import read_labelled_table

CATS = ScoredPair("A cat sleeps.", "A cat is asleep.", 4.5)
DOGS = ScoredPair("A dog barks.", "It rains.", 0.0)


class TestPublished:
    """The numbers of pairs are from the sets' readmes."""

    @pytest.fixture(autouse=True)
    def here(self, data, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(data))

    @pytest.mark.parametrize(
        ("name", "split", "count", "subsets", "unscored"),
        [
            ("stsbenchmark", "test", 1379, 1, 0),
            ("sts15", "test", 3000, 5, 5500),  # 8,500 pairs were sent to the systems
            ("sick", "train", 4500, 1, 0),
            ("stsb-multi:pt", "train", 5749, 1, 0),
        ],
    )
    def test_sts(self, name, split, count, subsets, unscored):
        found = load_sts_set(name, split)
        sizes = len(found.pairs), len(found.subsets), found.unscored
        assert (found.name, found.split, *sizes) == (name, split, count, subsets, unscored)
        least = 1 if name == "sick" else 0
        assert all(least <= pair.gold <= 5 and pair.left and pair.right for pair in found.pairs)

    def test_across_languages(self):
        names = ("en", "de", "en-de")
        english, german, across = (load_sts_set(f"stsb-multi:{name}").pairs for name in names)
        assert [pair.left for pair in across] == [pair.left for pair in english]
        assert [pair.right for pair in across] == [pair.right for pair in german]

    def test_labelled(self):
        for name, split, count, labels in (
            ("snli", "dev", 9842, {"entailment", "neutral", "contradiction"}),
            ("msrp", "test", 1725, {"0", "1"}),
            ("quora", "dev", 10000, {"0", "1"}),
        ):
            pairs = load_labelled_pairs(name, split)
            assert len(pairs) == count
            assert {pair.label for pair in pairs} == labels


class TestTables:
    @pytest.mark.parametrize(
        "text",
        [
            "sentence1,sentence2,score\nA cat sleeps.,A cat is asleep.,4.5\n",
            "id,left,right,similarity\r\n7,A cat sleeps.,A cat is asleep.,4.5\r\n",
            "label;text1;text2\n4.5;A cat sleeps.;A cat is asleep.\n",
            'a,b,score\n"A cat sleeps.","A cat is asleep."," 4.5 "\n\n',
            "A cat sleeps.,A cat is asleep.,4.5\n",
        ],
    )
    def test_columns(self, put, text):
        found = load_sts_set(str(put("cats.csv", text)))
        assert found == ("cats", "test", {"cats": [CATS]}, 0)

    def test_gzip(self, put):
        """Whatever the name of the file."""
        packed = gzip.compress(b"left\tright\tgold\nA dog barks.\tIt rains.\t0\n")
        for name, subset in (("dogs.tsv.gz", "dogs"), ("dogs.v2.tsv", "dogs.v2")):
            assert load_sts_set(str(put(name, packed))).subsets == {subset: [DOGS]}
        with pytest.raises(SemsearchError, match=r"cut\.csv\.gz"):
            load_sts_set(str(put("cut.csv.gz", packed[:-20])))

    def test_unscored_and_unlabelled_pairs(self, put):
        """The former are counted."""
        found = load_sts_set(str(put("c.csv", "a,b,score\nx,y,\nx,z,1\nx,w, \n")))
        assert (found.pairs, found.unscored) == ([ScoredPair("x", "z", 1.0)], 2)
        text = "gold_label,sentence1,sentence2\nneutral,x,y\n-,x,z\n ,x,v\n entailment,x,w\n"
        expected = [LabelledPair("x", "y", "neutral"), LabelledPair("x", "w", "entailment")]
        assert read_labelled_table(put("n.csv", text)) == expected

    def test_wrong_files(self, put, tmp_path, monkeypatch):
        for content, place in (
            ("", "t.csv"),
            ("first,second,score\na,b,1\n", "t.csv"),
            ("a,b,score\nx,y\n", "t.csv:2"),
            ("a,b,score\nx,y,nan\n", "t.csv:2"),
        ):
            with pytest.raises(SemsearchError, match=re.escape(place)):
                load_sts_set(str(put("t.csv", content)))
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        put("sts/stsbenchmark/sts-test.csv", "main-news\tx\t2013\t7\t4.5\tA cat.\n")
        with pytest.raises(SemsearchError, match=r"sts-test\.csv:1"):
            load_sts_set("stsbenchmark")

    def test_columns_named_by_the_user(self, put):
        file = str(put("t.csv", "kind,one,other,note\n1,a,b,x\n2,c,d,y\n"))
        expected = [ScoredPair("a", "b", 1.0), ScoredPair("c", "d", 2.0)]
        for columns in (("one", "other", "kind"), ("2", "3", "1"), ("2", "other", "kind")):
            assert load_sts_set(file, columns=PairColumns(*columns)).pairs == expected
        # The numbers 3 and 4 are also cells of the first row, but not names.
        bare = str(put("b.csv", "a,b,1,3\nc,d,2,5\n"))
        assert load_sts_set(bare, columns=PairColumns("1", "2", "3")).pairs == expected
        wrong = (("one", "other", "no"), ("one", "other", "5"), ("one", "one", "kind"))
        for columns in (*wrong, (None, None, "kind")):
            with pytest.raises(SemsearchError):
                load_sts_set(file, columns=PairColumns(*columns))


class TestSemEval:
    def test_sentences_and_gold_are_aligned(self, put, tmp_path):
        put("y/STS.input.news.txt", "\ufeffa\tb\r\nc\td\r\ne\tf\tfrom\tfrom\r\n")
        put("y/STS.gs.news.txt", "5.0\r\n\r\n2\r\n")
        put("y/STS.input.web.txt", "g\th")
        put("y/STS.gs.web.txt", "0.25\n\n")
        put("y/STS.gs.SMT.txt", "1\n")  # published without its sentences
        found = load_sts_set(str(tmp_path / "y"))
        assert found.name == "y"
        assert found.subsets == {
            "news": [("a", "b", 5.0), ("e", "f", 2.0)],
            "web": [("g", "h", 0.25)],
        }
        assert found.unscored == 1
        with pytest.raises(SemsearchError):
            load_sts_set(str(tmp_path / "y"), "dev")
