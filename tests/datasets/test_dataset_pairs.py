"""Scored and labelled pairs: published sets, and users' own files."""

from __future__ import annotations

import gzip

import pytest

from semsearch.datasets import (
    LabelledPair,
    PairColumns,
    ScoredPair,
    load_labelled_pairs,
    load_sts_set,
)
from semsearch.errors import DatasetError, DatasetNotFoundError

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
            ("stsbenchmark", "dev", 1500, 1, 0),
            ("stsbenchmark", "test", 1379, 1, 0),
            ("sts12", "test", 3108, 5, 0),
            ("sts15", "test", 3000, 5, 5500),  # 8,500 pairs were sent to the systems
            ("sick", "train", 4500, 1, 0),
            ("sick", "trial", 500, 1, 0),
            ("stsb-multi:pt", "train", 5749, 1, 0),
            ("stsb-multi:en-de", "test", 1379, 1, 0),
        ],
    )
    def test_sts(self, name, split, count, subsets, unscored):
        found = load_sts_set(name, split)
        assert (found.name, found.split) == (name, split)
        assert (len(found.pairs), len(found.subsets), found.unscored) == (count, subsets, unscored)
        least = 1 if name == "sick" else 0
        assert all(least <= pair.gold <= 5 and pair.left and pair.right for pair in found.pairs)

    def test_across_languages(self):
        """The first sentences of one language, the second ones of the other."""
        english, german, across = (
            load_sts_set(f"stsb-multi:{name}").pairs for name in ("en", "de", "en-de")
        )
        assert across == [
            (one.left, other.right, one.gold) for one, other in zip(english, german, strict=True)
        ]

    def test_all_of_sick(self, data, put, monkeypatch):
        """Its three parts one after another; the test part is not public without a form."""
        folder = data / "sts" / "SICK"
        for name in ("SICK_train.txt", "SICK_trial.txt"):
            put(f"sts/SICK/{name}", (folder / name).read_bytes())
        header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        test = put("sts/SICK/SICK_test_annotated.txt", f"{header}1\tTea\tHot tea\t4.5\tNEUTRAL\n")
        monkeypatch.setenv("SEMSEARCH_DATA", str(test.parents[2]))
        found = load_sts_set("sick", "all")
        assert (found.name, found.split, list(found.subsets)) == ("sick", "all", ["sick"])
        assert (len(found.pairs), found.pairs[-1]) == (5001, ScoredPair("Tea", "Hot tea", 4.5))
        assert found.pairs[:5000] == [
            *load_sts_set("sick", "train").pairs,
            *load_sts_set("sick", "trial").pairs,
        ]
        test.unlink()
        with pytest.raises(DatasetNotFoundError, match="SICK_test_annotated"):
            load_sts_set("sick", "all")

    @pytest.mark.parametrize(
        ("name", "split", "count", "labels"),
        [
            ("snli", "dev", 9842, {"entailment", "neutral", "contradiction"}),
            ("msrp", "test", 1725, {"0", "1"}),
            ("quora", "dev", 10000, {"0", "1"}),
        ],
    )
    def test_labelled(self, name, split, count, labels):
        pairs = load_labelled_pairs(name, split)
        assert len(pairs) == count
        assert {pair.label for pair in pairs} == labels


class TestNames:
    @pytest.mark.parametrize("name", ["stsbenchmark", "sts12", "sts16", "sick"])
    def test_a_missing_set(self, tmp_path, monkeypatch, name):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        with pytest.raises(DatasetNotFoundError) as caught:
            load_sts_set(name)
        assert str(tmp_path) in str(caught.value)

    def test_an_incomplete_year_is_refused(self, put, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        put("sts/STS13/STS.input.OnWN.txt", "a\tb\n")
        put("sts/STS13/STS.gs.OnWN.txt", "1\n")
        with pytest.raises(DatasetNotFoundError, match="FNWN"):
            load_sts_set("sts13")


class TestTables:
    @pytest.mark.parametrize(
        "text",
        [
            "sentence1,sentence2,score\nA cat sleeps.,A cat is asleep.,4.5\n",
            "\ufeffSentence_1,Sentence 2,Gold\nA cat sleeps.,A cat is asleep.,4.5",
            "id,left,right,similarity\r\n7,A cat sleeps.,A cat is asleep.,4.5\r\n",
            "label;text1;text2\n4.5;A cat sleeps.;A cat is asleep.\n",
            'a,b,score\n"A cat sleeps.","A cat is asleep."," 4.5 "\n\n',
            "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"
            "1\tA cat sleeps.\tA cat is asleep.\t4.5\n",
            "A cat sleeps.\tA cat is asleep.\t4.5\n",
            "4.5,A cat sleeps.,A cat is asleep.\n",
            "main-news\tx\t2013\t7\t4.5\tA cat sleeps.\tA cat is asleep.\tsource\tsource\n",
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

    def test_unscored_pairs_are_counted(self, put):
        found = load_sts_set(str(put("c.csv", "a,b,score\nx,y,\nx,z,1\nx,w, \n")))
        assert (found.pairs, found.unscored) == ([ScoredPair("x", "z", 1.0)], 2)

    def test_quotes_in_tables_with_tabs(self, put):
        """In published tables they are part of the sentence; pandas would quote the cell."""
        published = 'a\tb\tscore\n"Yes," he said.\t"No"\t1\n'
        (pair,) = load_sts_set(str(put("p.tsv", published))).pairs
        assert pair == ('"Yes," he said.', '"No"', 1.0)
        written = 'a\tb\tscore\n"""Yes,"" he said."\tNo\t1\n'
        (pair,) = load_sts_set(str(put("w.tsv", written))).pairs
        assert pair == ('"Yes," he said.', "No", 1.0)

    def test_line_breaks_and_odd_characters_in_cells(self, put):
        text = 'a,b,score\n"one\ntwo","x\u2028y\x85z",1\nc,d,bad\n'
        file = put("c.csv", text)
        with pytest.raises(DatasetError, match=r"c\.csv:4"):
            load_sts_set(str(file))
        file.write_bytes(text.replace("bad", "2").encode())
        assert load_sts_set(str(file)).pairs[0] == ("one\ntwo", "x\u2028y\x85z", 1.0)

    @pytest.mark.parametrize(
        ("content", "place"),
        [
            ("", r"t\.csv"),
            ("\n \n", r"t\.csv"),
            ("first,second,score\na,b,1\n", r"t\.csv:1"),
            ("just a line\n", ""),
            ("a,b,score\nx,y\n", r"t\.csv:2"),
            ("score,a,b\n1,x,y\n2,x,y, z\n", r"t\.csv:3"),
            ("1,x,y\n2,x,y, z\n", r"t\.csv:2"),
            ("a,b,score\nx,y,nan\n", r"t\.csv:2"),
            ("a,b,score\nx,y,inf\n", ""),
            ('a,b,score\nx,"y,1\nz,w,2\n', r"t\.csv:2"),
            (b"a,b,score\nx,y,1\nx,\xff,1\n", r"t\.csv:3"),
        ],
    )
    def test_wrong_files(self, put, content, place):
        with pytest.raises(DatasetError, match=place or None):
            load_sts_set(str(put("t.csv", content)))

    @pytest.mark.parametrize(
        ("content", "column", "place"),
        [
            # Categories of news before title and description, and after them.
            ('"3","Rain","Wet."\n"4","Chips","New."\n"1","Talks","Again."\n', "1", ""),
            ("Rain,Wet.,3\nChips,New.,4\nTalks,Again.,1\n", "3", ""),
            ("0,Rain,Wet.\n1,Chips,New.\n0,Talks,Again.\n", "1", ""),
            ("Rain,Wet.,1998\nSun,Warm.,2001\nFog,Grey.,2004\n", "3", ""),
            # Entailment, neutral, contradiction.
            ("premise,hypothesis,label\na,b,0\nc,d,1\ne,f,2\n", "label", ""),
            (
                "a,b,score\n" + "".join(f"x,y,{n}\n" for n in range(7, 19)),
                "score",
                "",
            ),
        ],
    )
    def test_numbers_that_are_unlikely_gold_scores(self, put, content, column, place):
        file = str(put("t.csv", content))
        shown = f"column {column}" if column.isdecimal() else f"'{column}'"
        with pytest.raises(DatasetError, match=f"{shown} .*{place}.*name it with --score-column"):
            load_sts_set(file)
        assert len(load_sts_set(file, columns=PairColumns(score=column)).pairs) >= 3

    def test_constant_gold_scores_are_always_refused(self, put):
        file = put("t.csv", "a,b,score\n" + "x,y,3\n" * 3)
        for columns in (None, PairColumns(score="score")):
            with pytest.raises(DatasetError):
                load_sts_set(str(file), columns=columns)

    def test_columns_named_by_the_user(self, put):
        file = str(put("t.csv", "kind,one,other,note\n1,a,b,x\n2,c,d,y\n"))
        expected = [ScoredPair("a", "b", 1.0), ScoredPair("c", "d", 2.0)]
        for columns in (("one", "other", "kind"), ("2", "3", "1"), ("2", "other", "kind")):
            assert load_sts_set(file, columns=PairColumns(*columns)).pairs == expected
        bare = str(put("b.csv", "1,a,b,x\n2,c,d,y\n"))
        assert load_sts_set(bare, columns=PairColumns("2", "3", "1")).pairs == expected
        # The numbers 3 and 4 are also cells of the first row, but not names.
        votes = str(put("v.csv", "a,b,1,3\nc,d,2,5\n"))
        assert load_sts_set(votes, columns=PairColumns("1", "2", "3")).pairs == expected
        numbered = str(put("n.csv", "1,a,b,4\n2,c,d,1\n"))
        found = load_sts_set(numbered, columns=PairColumns("2", "3", "4")).pairs
        assert [pair.gold for pair in found] == [4, 1]
        headed = str(put("h.csv", "2,1,score\na,b,1\nc,d,2\n"))
        swapped = load_sts_set(headed, columns=PairColumns("1", "2", "score")).pairs
        assert swapped == [ScoredPair(one.right, one.left, one.gold) for one in expected]
        for columns, place in [
            (("one", "other", "no"), r"no column 'no' \(columns: kind, one, other, note\)"),
            (("one", "other", "5"), "no column '5'"),
            (("one", "one", "kind"), "must be three different columns"),
            ((None, None, "kind"), "no columns for two texts and a score"),
        ]:
            with pytest.raises(DatasetError, match=place or None):
                load_sts_set(file, columns=PairColumns(*columns))
        with pytest.raises(DatasetError):
            load_sts_set("sts12", columns=PairColumns(score="3"))

    @pytest.mark.parametrize(
        "content",
        [b"no gzip", gzip.compress(b"a,b,score\n" * 99, mtime=0)[:-20]],
        ids=["not gzip", "truncated"],
    )
    def test_damaged_archives(self, put, content):
        with pytest.raises(DatasetError, match=r"t\.csv\.gz"):
            load_sts_set(str(put("t.csv.gz", content)))

    def test_labels(self, put):
        text = "gold_label,sentence1,sentence2\nneutral,x,y\n-,x,z\nentailment,x,w\n"
        assert load_labelled_pairs(str(put("n.csv", text))) == [
            LabelledPair("x", "y", "neutral"),
            LabelledPair("x", "w", "entailment"),
        ]


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
        with pytest.raises(DatasetError):
            load_sts_set(str(tmp_path / "y"), "dev")
