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
    sts_names,
)
from semsearch.datasets.translated import parallel_sentences
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
            ("stsbenchmark", "train", 5749, 1, 0),
            ("stsbenchmark", "dev", 1500, 1, 0),
            ("stsbenchmark", "test", 1379, 1, 0),
            ("sts12", "test", 3108, 5, 0),
            ("sts13", "test", 1500, 3, 0),
            ("sts14", "test", 3750, 6, 0),
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

    def test_subsets_of_a_year(self):
        sizes = {name: len(pairs) for name, pairs in load_sts_set("sts12").subsets.items()}
        assert sizes == {
            "MSRpar": 750,
            "MSRvid": 750,
            "SMTeuroparl": 459,
            "surprise.OnWN": 750,
            "surprise.SMTnews": 399,
        }

    @pytest.mark.parametrize(
        ("name", "split", "count", "labels"),
        [
            ("snli", "dev", 9842, {"entailment", "neutral", "contradiction"}),
            ("snli", "test", 9818, {"entailment", "neutral", "contradiction"}),
            ("msrp", "train", 3576, {"0", "1"}),
            ("msrp", "dev", 500, {"0", "1"}),
            ("msrp", "test", 1725, {"0", "1"}),
            ("quora", "dev", 10000, {"0", "1"}),
        ],
    )
    def test_labelled(self, name, split, count, labels):
        pairs = load_labelled_pairs(name, split)
        assert len(pairs) == count
        assert {pair.label for pair in pairs} == labels

    def test_files_by_path(self, data):
        dev = load_sts_set(str(data / "sts/stsbenchmark/sts-dev.csv"))
        assert dev.subsets["sts-dev"] == load_sts_set("stsbenchmark", "dev").pairs
        assert load_sts_set(str(data / "sts/STS14")).subsets == load_sts_set("sts14").subsets


class TestNames:
    def test_known(self):
        years = [f"sts{year}" for year in range(12, 17)]
        assert sts_names() == ["stsbenchmark", *years, "sick"]

    @pytest.mark.parametrize("name", ["stsbenchmark", "sts12", "sts16", "sick"])
    def test_a_missing_set(self, tmp_path, monkeypatch, name):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        with pytest.raises(
            DatasetNotFoundError, match=f"semsearch datasets fetch {name}$"
        ) as caught:
            load_sts_set(name)
        assert str(tmp_path) in str(caught.value)

    def test_an_incomplete_year_is_refused(self, put, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        put("sts/STS13/STS.input.OnWN.txt", "a\tb\n")
        put("sts/STS13/STS.gs.OnWN.txt", "1\n")
        with pytest.raises(DatasetNotFoundError, match="FNWN"):
            load_sts_set("sts13")

    @pytest.mark.parametrize(
        ("load", "name", "splits"),
        [
            (load_sts_set, "stsbenchmark", "train, dev, test"),
            (load_sts_set, "sts14", "test"),
            (load_sts_set, "sick", "train, trial, test, all"),
            (load_labelled_pairs, "quora", "dev"),
        ],
    )
    def test_unknown_splits(self, load, name, splits):
        with pytest.raises(DatasetError, match=rf"no split 'x' \(splits: {splits}\)$"):
            load(name, "x")

    @pytest.mark.parametrize(
        "name", ["stsb-multi", "stsb-multi:", "stsb-multi:en-", "stsb-multi:../x"]
    )
    def test_invalid_languages(self, name):
        with pytest.raises(DatasetError, match=r"must name one language \(stsb-multi:pt\) or two"):
            load_sts_set(name)

    def test_missing_languages(self, put, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        put("sts/stsb-multi/stsb-en-test.csv", "a,b,1.5\nc,d,2.5\n")
        with pytest.raises(DatasetNotFoundError, match=r"stsb-fr-test\.csv is not in "):
            load_sts_set("stsb-multi:en-fr")
        put("sts/stsb-multi/stsb-fr-test.csv", "a,b,2.5\nc,d,1.5\n")
        for load in (load_sts_set, lambda _: parallel_sentences("fr", "test")):
            with pytest.raises(DatasetError, match="the pairs of the two languages differ"):
                load("stsb-multi:en-fr")

    @pytest.mark.parametrize("load", [load_sts_set, load_labelled_pairs])
    def test_a_misspelt_name(self, load, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DatasetNotFoundError, match=r"no .* or file 'stsb' \(known: s"):
            load("stsb")

    @pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "~nobody-of-that-name/x"])
    def test_names_that_are_not_paths(self, name):
        with pytest.raises(DatasetNotFoundError, match="no STS set or file"):
            load_sts_set(name)


class TestTables:
    def test_long_cells(self, put):
        """Longer than the default limit of Python's csv module, 131,072 characters."""
        long = "word " * 50_000
        (pair,) = load_sts_set(str(put("l.csv", f"a,b,score\n{long},y,1\n"))).pairs
        assert pair.left == long
        assert load_sts_set(str(put("m.csv", f"{long},y,1\n"))).pairs == [pair]

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
        with pytest.raises(DatasetError, match=r"c\.csv:4: the gold score is not a number: 'bad'$"):
            load_sts_set(str(file))
        file.write_bytes(text.replace("bad", "2").encode())
        assert load_sts_set(str(file)).pairs[0] == ("one\ntwo", "x\u2028y\x85z", 1.0)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("", r"t\.csv is empty"),
            ("\n \n", r"t\.csv is empty"),
            ("first,second,score\na,b,1\n", r"t\.csv:1: no columns .*\(columns: first, second, sc"),
            ("just a line\n", "no columns for two texts and a score"),
            ("a,b,score\nx,y\n", r"t\.csv:2: 2 columns; expected 3"),
            ("score,a,b\n1,x,y\n2,x,y, z\n", r"t\.csv:3: 4 columns; expected 3"),
            ("1,x,y\n2,x,y, z\n", r"t\.csv:2: 4 columns; expected 3"),
            ("a,b,score\nx,y,nan\n", r"t\.csv:2: the gold score is not a number"),
            ("a,b,score\nx,y,inf\n", "not a number"),
            ('a,b,score\nx,"y,1\nz,w,2\n', r"t\.csv:2: not a row of CSV"),
            (b"a,b,score\nx,y,1\nx,\xff,1\n", r"t\.csv:3: byte 0xff is not UTF-8; "),
        ],
    )
    def test_wrong_files(self, put, content, reason):
        with pytest.raises(DatasetError, match=reason):
            load_sts_set(str(put("t.csv", content)))

    @pytest.mark.parametrize(
        ("content", "column", "reason"),
        [
            # Categories of news before title and description, and after them.
            ('"3","Rain","Wet."\n"4","Chips","New."\n"1","Talks","Again."\n', "1", r"\(1, 3, 4\)"),
            ("Rain,Wet.,3\nChips,New.,4\nTalks,Again.,1\n", "3", r"integers .*\(1, 3, 4\)"),
            ("0,Rain,Wet.\n1,Chips,New.\n0,Talks,Again.\n", "1", r"\(0, 1\)"),
            ("Rain,Wet.,1998\nSun,Warm.,2001\nFog,Grey.,2004\n", "3", r"\(1998, 2001, 2004\)"),
            # Entailment, neutral, contradiction.
            ("premise,hypothesis,label\na,b,0\nc,d,1\ne,f,2\n", "label", r"\(0, 1, 2\)"),
            (
                "a,b,score\n" + "".join(f"x,y,{n}\n" for n in range(7, 19)),
                "score",
                "numbers the rows",
            ),
        ],
    )
    def test_numbers_that_are_unlikely_gold_scores(self, put, content, column, reason):
        file = str(put("t.csv", content))
        shown = f"column {column}" if column.isdecimal() else f"'{column}'"
        with pytest.raises(DatasetError, match=f"{shown} .*{reason}.*name it with --score-column"):
            load_sts_set(file)
        assert len(load_sts_set(file, columns=PairColumns(score=column)).pairs) >= 3

    def test_constant_gold_scores_are_always_refused(self, put):
        file = put("t.csv", "a,b,score\n" + "x,y,3\n" * 3)
        for columns in (None, PairColumns(score="score")):
            with pytest.raises(DatasetError, match="'score' is 3 in all rows"):
                load_sts_set(str(file), columns=columns)

    @pytest.mark.parametrize(
        ("content", "left", "right", "score", "span"),
        [
            ("a,b,5.0\nc,d,3.2\ne,f,0.0\n", "column 1", "column 2", "column 3", "0 to 5"),
            ("a,b,5.0\nc,d,3.0\ne,f,0.0\n", "column 1", "column 2", "column 3", "0 to 5"),
            ("a,b,1\nc,d,0\ne,f,0\n", "column 1", "column 2", "column 3", "0 to 1"),
            ("s1,s2,score\na,b,5\nc,d,1\ne,f,3\n", "'s1'", "'s2'", "'score'", "1 to 5"),
            ("label,a,b\n1,a,b\n0,c,d\n1,e,f\n", "'a'", "'b'", "'label'", "0 to 1"),
        ],
    )
    def test_the_chosen_columns_are_reported(self, put, content, left, right, score, span):
        lines = []
        assert len(load_sts_set(str(put("t.csv", content)), notify=lines.append).pairs) == 3
        assert lines == [f"t.csv: texts from {left} and {right}, gold scores from {score} ({span})"]

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
        for columns, reason in [
            (("one", "other", "no"), r"no column 'no' \(columns: kind, one, other, note\)"),
            (("one", "other", "5"), "no column '5'"),
            (("one", "one", "kind"), "must be three different columns"),
            ((None, None, "kind"), "no columns for two texts and a score"),
        ]:
            with pytest.raises(DatasetError, match=reason):
                load_sts_set(file, columns=PairColumns(*columns))
        with pytest.raises(DatasetError, match="columns can only be named for a file"):
            load_sts_set("sts12", columns=PairColumns(score="3"))

    def test_published_tables_without_a_header(self, data):
        """Translated STS Benchmark, and duplicate questions, both without a header."""
        files = ("stsb-multi/stsb-en-dev.csv", "stsbenchmark/sts-dev.csv")
        english, original = (load_sts_set(str(data / "sts" / file)).pairs for file in files)
        assert [pair.gold for pair in english] == [pair.gold for pair in original]
        quora = load_sts_set(str(data / "pairs" / "quora_dev.tsv")).pairs
        assert {pair.gold for pair in quora} == {0, 1}

    def test_the_expected_columns_are_reported(self, put):
        with pytest.raises(DatasetError, match="sentence1/sentence2.*similarity"):
            load_sts_set(str(put("t.csv", "x,y,z\n")))

    @pytest.mark.parametrize(
        "content",
        [b"no gzip", gzip.compress(b"a,b,score\n" * 99, mtime=0)[:-20]],
        ids=["not gzip", "truncated"],
    )
    def test_damaged_archives(self, put, content):
        with pytest.raises(DatasetError, match=r"t\.csv\.gz is damaged"):
            load_sts_set(str(put("t.csv.gz", content)))

    def test_labels(self, put):
        text = "gold_label,sentence1,sentence2\nneutral,x,y\n-,x,z\nentailment,x,w\n"
        assert load_labelled_pairs(str(put("n.csv", text))) == [
            LabelledPair("x", "y", "neutral"),
            LabelledPair("x", "w", "entailment"),
        ]

    def test_labels_without_a_header(self, put):
        assert load_labelled_pairs(str(put("q.tsv", "x ?\ty ?\t1\n"))) == [("x ?", "y ?", "1")]


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
        with pytest.raises(DatasetError, match=r"y has no split 'dev' \(splits: test\)"):
            load_sts_set(str(tmp_path / "y"), "dev")

    def test_a_folder_named_like_a_published_set_is_another_set(self, put, tmp_path, monkeypatch):
        put("sick/STS.input.web.txt", "a\tb\n")
        put("sick/STS.gs.web.txt", "1\n")
        monkeypatch.chdir(tmp_path)
        assert load_sts_set("./sick").name == "./sick"

    def test_an_unscored_pair_at_the_end(self, put, tmp_path):
        put("y/STS.input.web.txt", "a\tb\nc\td\n")
        put("y/STS.gs.web.txt", "1\n\n")
        assert load_sts_set(str(tmp_path / "y")).unscored == 1

    def test_the_file_names_of_2016(self, put, tmp_path):
        put("y/STS2016.input.web.txt", "a\tb\tsource\n")
        put("y/STS2016.gs.web.txt", "3\n")
        assert load_sts_set(str(tmp_path / "y")).subsets == {"web": [("a", "b", 3.0)]}

    @pytest.mark.parametrize(
        ("sentences", "gold", "reason"),
        [
            ("a\tb\nc\td\n", "1\n", "has 2 lines, STS.gs.x.txt 1; they must be aligned"),
            ("a\tb\n", "1\n2\n", "has 1 lines, STS.gs.x.txt 2"),
            ("a\tb\nno tab\n", "1\n2\n", r"STS\.input\.x\.txt:2: no tab"),
            ("a\tb\n", "high\n", r"STS\.gs\.x\.txt:1: the gold score is not a number"),
            ("a\tb\n", None, "STS.gs.x.txt is missing from its folder"),
        ],
    )
    def test_wrong_files(self, put, tmp_path, sentences, gold, reason):
        put("y/STS.input.x.txt", sentences)
        if gold is not None:
            put("y/STS.gs.x.txt", gold)
        with pytest.raises(DatasetError, match=reason):
            load_sts_set(str(tmp_path / "y"))

    def test_a_folder_of_other_files(self, tmp_path):
        with pytest.raises(DatasetError, match=r"has no file STS\.input\.NAME\.txt"):
            load_sts_set(str(tmp_path))
